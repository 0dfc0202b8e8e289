"""Tokens for service accounts on request: `POST …/serviceaccounts/<name>/token`."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import (
    bad_request,
    conflict,
    invalid,
    invalid_value,
    not_found,
)
from kubewright.controlplane.embedded.auth.authenticate import Lookup
from kubewright.controlplane.embedded.auth.tokens import TokenSigner
from kubewright.controlplane.embedded.auth.users import service_account_name

_GROUP = "authentication.k8s.io"
_KIND = "TokenRequest"
_HOUR = 3600
_MIN_SECONDS = 600
_MAX_SECONDS = 1 << 32
# The kubelet requests tokens of exactly this age for pods that may not know how to renew them. They get a
# year, and the requested hour is recorded in the token as the time after which its use is logged.
_OF_PODS = 3607
_YEAR = 365 * 24 * 3600


@dataclass(frozen=True, slots=True)
class TokenIssuer:
    """Issues tokens; `audiences` are those of this server, for requests that name none."""

    signer: TokenSigner
    lookup: Lookup
    clock: Callable[[], float]
    audiences: Sequence[str]

    def issue(self, namespace: str, name: str, request: JSONObject) -> JSONObject:
        """The TokenRequest with its token in the status. Raises StatusError when there is to be none."""
        metadata = mapping(request, "metadata")
        if text(metadata, "name") not in ("", name):
            wrong = "must match the service account name if specified"
            raise invalid(_KIND, _GROUP, name, [invalid_value("metadata.name", metadata["name"], wrong)])
        account = self.lookup("serviceaccounts", namespace, name)
        if account is None:
            raise not_found("serviceaccounts", "", name)
        uid = text(account, "metadata", "uid")
        requested = text(metadata, "uid")
        if requested not in ("", uid):
            raise conflict(
                _KIND,
                _GROUP,
                name,
                f"the UID in the token request ({requested}) does not match the UID of the service account ({uid})",
            )
        spec = mapping(request, "spec")
        seconds = _seconds(spec)
        audiences = [audience for audience in items(spec, "audiences") if isinstance(audience, str)]
        audiences = audiences or list(self.audiences)
        bound = self._bound(namespace, name, spec)
        now = int(self.clock())
        about: JSONObject = {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}, **bound}
        lifetime = seconds
        if "pod" in bound and seconds == _OF_PODS and set(audiences) <= set(self.audiences):
            about["warnafter"] = now + seconds
            lifetime = _YEAR
        claims: JSONObject = {
            "aud": [*audiences],
            "exp": now + lifetime,
            "iat": now,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": about,
            "nbf": now,
            "sub": service_account_name(namespace, name),
        }
        identity: JSONObject = {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "creationTimestamp": _timestamp(now),
        }
        return {
            "kind": _KIND,
            "apiVersion": f"{_GROUP}/v1",
            "metadata": {**identity, **metadata, **identity},
            "spec": {
                "audiences": [*audiences],
                "expirationSeconds": seconds,
                "boundObjectRef": at(spec, "boundObjectRef"),
            },
            "status": {"token": self.signer.sign(claims), "expirationTimestamp": _timestamp(now + seconds)},
        }

    def _bound(self, namespace: str, name: str, spec: JSONObject) -> JSONObject:
        """The claims about the object that the token is bound to; empty when it is bound to none."""
        reference = at(spec, "boundObjectRef")
        if not isinstance(reference, dict):
            return {}
        group, _, version = text(reference, "apiVersion").rpartition("/")
        kind, object_name = text(reference, "kind"), text(reference, "name")
        if group or kind not in ("Pod", "Secret", "Node"):
            raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        plural = f"{kind.lower()}s"
        stored = self.lookup(plural, "" if kind == "Node" else namespace, object_name)
        if stored is None:
            raise not_found(plural, "", object_name)
        if kind == "Pod" and text(stored, "spec", "serviceAccountName") != name:
            raise bad_request(
                f"cannot bind token for serviceaccount {quoted(name)} "
                "to pod running with different serviceaccount name."
            )
        uid = text(stored, "metadata", "uid")
        requested = text(reference, "uid")
        if requested not in ("", uid):
            raise conflict(
                kind,
                "",
                object_name,
                f"the UID in the bound object reference ({requested}) does not match the UID in record. "
                "The object might have been deleted and then recreated",
            )
        claims: JSONObject = {kind.lower(): {"name": object_name, "uid": uid}}
        node_name = text(stored, "spec", "nodeName") if kind == "Pod" else ""
        if node_name:
            node = self.lookup("nodes", "", node_name)
            # The pod stays bound to a node that was deleted.
            claims["node"] = {"name": node_name, **({"uid": text(node, "metadata", "uid")} if node else {})}
        return claims


def _seconds(spec: JSONObject) -> int:
    seconds = at(spec, "expirationSeconds")
    if not isinstance(seconds, int):
        return _HOUR
    wrong = ""
    if seconds < _MIN_SECONDS:
        wrong = "may not specify a duration less than 10 minutes"
    elif seconds > _MAX_SECONDS:
        wrong = "may not specify a duration larger than 2^32 seconds"
    if wrong:
        raise invalid(_KIND, _GROUP, "", [invalid_value("spec.expirationSeconds", seconds, wrong)])
    return seconds


def _timestamp(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
