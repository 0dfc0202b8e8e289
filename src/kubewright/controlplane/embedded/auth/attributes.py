"""Authorization attributes: user, verb, and resource or path. And the message of a refusal."""

from __future__ import annotations

from typing import NamedTuple

from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import StatusError, forbidden
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.endpoints.request import Target


class Attributes(NamedTuple):
    """One question. With `resource_request` false only `verb` and `path` count."""

    user: UserInfo
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    resource_request: bool = True

    @classmethod
    def of(cls, target: Target, user: UserInfo) -> Attributes:
        """The attributes of a request."""
        return cls(
            user,
            target.verb,
            target.group,
            target.version,
            target.resource,
            target.subresource,
            target.namespace,
            target.name,
            target.path,
            bool(target.resource),
        )


def forbidden_request(attributes: Attributes, reason: str = "") -> StatusError:
    """403 for a request that is not authorized; `reason` is the authorizer's, if it gave one."""
    # The real server sends its messages through an HTML sanitizer, but not the reason.
    summary = _summary(attributes).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    if reason:
        summary += f": {reason}"
    if not attributes.resource:
        # No resource: Kubernetes leaves out both the name and the word "is".
        return StatusError(403, "Forbidden", f"forbidden: {summary}", details={})
    return forbidden(attributes.resource, attributes.group, attributes.name, summary)


def _summary(attributes: Attributes) -> str:
    who = f"User {quoted(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.resource_request:
        return f"{who} path {quoted(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource += f"/{attributes.subresource}"
    where = f"in the namespace {quoted(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"{who} resource {quoted(resource)} in API group {quoted(attributes.group)} {where}"
