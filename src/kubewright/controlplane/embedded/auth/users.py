"""Users as the server knows them: a name, groups, and what their credential says about them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kubewright.api.markers import JSONObject

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
NODES = "system:nodes"
SERVICE_ACCOUNTS = "system:serviceaccounts"

CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
POD_NAME = "authentication.kubernetes.io/pod-name"
POD_UID = "authentication.kubernetes.io/pod-uid"
NODE_NAME = "authentication.kubernetes.io/node-name"
NODE_UID = "authentication.kubernetes.io/node-uid"

_SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
_NODE_PREFIX = "system:node:"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class UserInfo:
    """The user of a request. `extra` never holds a secret: credentials are named by their digest or id."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)

    def document(self) -> JSONObject:
        """The user as `authentication.k8s.io/v1 UserInfo`, without what is empty."""
        info: JSONObject = {}
        if self.name:
            info["username"] = self.name
        if self.uid:
            info["uid"] = self.uid
        if self.groups:
            info["groups"] = list(self.groups)
        if self.extra:
            info["extra"] = {key: list(values) for key, values in self.extra.items()}
        return info

    def in_group(self, group: str) -> UserInfo:
        """The user in one more group, which comes last; the same object when it is in that group already."""
        return self if group in self.groups else replace(self, groups=(*self.groups, group))


ANONYMOUS_USER = UserInfo(ANONYMOUS, (UNAUTHENTICATED,))


def authenticated(user: UserInfo) -> UserInfo:
    """The user in the group of all authenticated users, unless it is anonymous."""
    if user.name == ANONYMOUS or UNAUTHENTICATED in user.groups:
        return user
    return user.in_group(AUTHENTICATED)


def service_account_name(namespace: str, name: str) -> str:
    """The name under which a service account makes requests."""
    return f"{_SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of every service account of a namespace."""
    return (SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}")


def service_account_of(user_name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user name stands for; None for any other user."""
    if not user_name.startswith(_SERVICE_ACCOUNT_PREFIX):
        return None
    parts = user_name[len(_SERVICE_ACCOUNT_PREFIX) :].split(":")
    if len(parts) != 2 or not is_label(parts[0]) or not is_subdomain(parts[1]):
        return None
    return parts[0], parts[1]


def node_of(user_name: str) -> str | None:
    """The name of the node that a user name stands for; None for any other user."""
    name = user_name[len(_NODE_PREFIX) :]
    return name if user_name.startswith(_NODE_PREFIX) and is_subdomain(name) else None


def is_subdomain(text: str) -> bool:
    """Whether a name is a lower-case DNS subdomain."""
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None


def is_label(text: str) -> bool:
    """Whether a name is a lower-case DNS label."""
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None
