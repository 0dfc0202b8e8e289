"""Impersonation: the `Impersonate-*` headers.

Kubernetes 1.36 has two ways to allow it. The constrained one requires a right for the kind of impersonation
(`impersonate:user-info` on the user) and one for what is done with it (`impersonate-on:user-info:list` on pods). The
older one requires `impersonate` on the user, its groups, its uid and its extras, and then allows everything. They are
tried in this order; when all refuse, the first refusal is returned.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request
from kubewright.controlplane.embedded.auth.attributes import Attributes, forbidden_request
from kubewright.controlplane.embedded.auth.extras import what_is_wrong_with
from kubewright.controlplane.embedded.auth.rbac import Authorizer
from kubewright.controlplane.embedded.auth.users import (
    ANONYMOUS,
    AUTHENTICATED,
    MASTERS,
    NODE_NAME,
    NODES,
    UNAUTHENTICATED,
    UserInfo,
    node_of,
    service_account_groups,
    service_account_of,
)

_PREFIX = "impersonate-"
_EXTRA = "impersonate-extra-"
_GROUP = "authentication.k8s.io"
_MANY = 4
"""From so many groups or extras on, the right to all of them (`*`) is checked first."""
_REMEMBERED = 10_000
_LEGACY = "legacy"


class ImpersonatedUser(NamedTuple):
    """The user a request acts as, and its constrained permission (`impersonate:user-info`); empty for the older."""

    user: UserInfo
    constraint: str


class Impersonator:
    """Decides which users may be impersonated."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self._last_mode: dict[str, str] = {}

    def impersonate(self, headers: Iterable[tuple[str, str]], attributes: Attributes) -> ImpersonatedUser | None:
        """The user that the headers request, checked for the user in `attributes`; None without. Raises 400 or 403."""
        requested = [(name.lower(), value) for name, value in headers if name[:12].lower() == _PREFIX]
        wanted = _wanted(requested) if requested else None
        if wanted is None:
            return None
        requestor = attributes.user
        refusals: list[StatusError] = []
        for mode in self._modes(wanted, requestor):
            try:
                user = self._try(mode, wanted, attributes)
            except StatusError as error:
                refusals.append(error)
                continue
            if len(self._last_mode) >= _REMEMBERED:
                self._last_mode.clear()
            self._last_mode[requestor.name] = mode
            return ImpersonatedUser(user, "" if mode == _LEGACY else f"impersonate:{mode}")
        raise refusals[0]

    def _modes(self, wanted: UserInfo, requestor: UserInfo) -> list[str]:
        """The ways that may be tried. The one that last worked for this user comes first, and so does its refusal."""
        only_name = not (wanted.uid or wanted.groups or wanted.extra)
        node = node_of(wanted.name)
        account = service_account_of(wanted.name)
        modes = []
        if node is not None and only_name:
            if service_account_of(requestor.name) and requestor.extra.get(NODE_NAME) == (node,):
                modes.append("associated-node")
            modes.append("arbitrary-node")
        if account is not None and only_name:
            modes.append("serviceaccount")
        if node is None and account is None:
            modes.append("user-info")
        modes.append(_LEGACY)
        last = self._last_mode.get(requestor.name)
        return sorted(modes, key=lambda mode: mode != last)

    def _try(self, mode: str, wanted: UserInfo, attributes: Attributes) -> UserInfo:
        if mode == _LEGACY:
            return _Check(self._authorizer, attributes.user, "impersonate", constrained=False).allowed(wanted)
        verb = f"impersonate-on:{mode}:{attributes.verb}"
        self._authorizer.require(attributes._replace(verb=verb))
        return _Check(self._authorizer, attributes.user, f"impersonate:{mode}", constrained=True).allowed(wanted)


@dataclass(frozen=True, slots=True)
class _Check:
    authorizer: Authorizer
    requestor: UserInfo
    verb: str
    constrained: bool

    def allowed(self, wanted: UserInfo) -> UserInfo:
        """The user with all its groups, when every part of it may be impersonated."""
        groups = self._name(wanted)
        if wanted.uid:
            self._require("uids", wanted.uid)
        self._groups(wanted.groups)
        self._extra(wanted.extra)
        user = UserInfo(wanted.name, groups, wanted.uid, wanted.extra)
        if user.name == ANONYMOUS:
            return user.in_group(UNAUTHENTICATED)
        return user if UNAUTHENTICATED in groups else user.in_group(AUTHENTICATED)

    def _name(self, wanted: UserInfo) -> tuple[str, ...]:
        """Check the name, and return the groups that the user has with it."""
        node = node_of(wanted.name) if self.constrained else None
        if node is not None:
            # Which node it is does not matter for the node the requestor itself runs on.
            self._require("nodes", "*" if self.verb == "impersonate:associated-node" else node)
            return (NODES,)
        account = service_account_of(wanted.name)
        if account is not None:
            namespace, name = account
            self._require("serviceaccounts", name, group=self._user_group, namespace=namespace)
            return wanted.groups or service_account_groups(namespace)
        self._require("users", wanted.name, group=self._user_group)
        return wanted.groups

    def _groups(self, groups: tuple[str, ...]) -> None:
        if self.constrained:
            if "" in groups:
                self._refuse("groups", "", "impersonating the empty string group is not allowed")
            if MASTERS in groups:
                self._refuse("groups", MASTERS, f"impersonating the {MASTERS} group is not allowed")
            if len(groups) >= _MANY and self._allows("groups", "*", group=self._user_group):
                return
        for group in groups:
            self._require("groups", group, group=self._user_group)

    def _extra(self, extra: Mapping[str, tuple[str, ...]]) -> None:
        if self.constrained:
            if wrong := what_is_wrong_with(extra):
                self._refuse("userextras", "", wrong)
            if sum(map(len, extra.values())) >= _MANY and self._allows("userextras", "*", subresource="*"):
                return
        for key, values in extra.items():
            for value in values:
                self._require("userextras", value, subresource=key)

    @property
    def _user_group(self) -> str:
        return _GROUP if self.constrained else ""

    def _attributes(
        self, resource: str, name: str, *, group: str = _GROUP, namespace: str = "", subresource: str = ""
    ) -> Attributes:
        return Attributes(self.requestor, self.verb, group, "v1", resource, subresource, namespace, name)

    def _allows(self, resource: str, name: str, *, group: str = _GROUP, subresource: str = "") -> bool:
        question = self._attributes(resource, name, group=group, subresource=subresource)
        return self.authorizer.authorize(question).allowed

    def _require(
        self, resource: str, name: str, *, group: str = _GROUP, namespace: str = "", subresource: str = ""
    ) -> None:
        self.authorizer.require(
            self._attributes(resource, name, group=group, namespace=namespace, subresource=subresource)
        )

    def _refuse(self, resource: str, name: str, why: str) -> None:
        raise forbidden_request(self._attributes(resource, name), why)


def _wanted(headers: Iterable[tuple[str, str]]) -> UserInfo | None:
    """The user in the headers (names in lower case); None without any. Without a name, raises the 400."""
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name, []).append(value)
    extra = {unquote(name[len(_EXTRA) :]): tuple(found) for name, found in values.items() if name.startswith(_EXTRA)}
    wanted = UserInfo(
        values.get("impersonate-user", [""])[0],
        tuple(values.get("impersonate-group", ())),
        values.get("impersonate-uid", [""])[0],
        extra,
    )
    if wanted.name:
        return wanted
    if wanted.uid or wanted.groups or extra:
        raise bad_request(f"requested {_in_go(wanted)} without impersonating a user name")
    return None


def _in_go(user: UserInfo) -> str:
    extras = ", ".join(f"{quoted(key)}:{_list_in_go(user.extra[key])}" for key in sorted(user.extra))
    extra = f"map[string][]string{{{extras}}}" if extras else "map[string][]string(nil)"
    return (
        f"&user.DefaultInfo{{Name:{quoted(user.name)}, UID:{quoted(user.uid)}, "
        f"Groups:{_list_in_go(user.groups)}, Extra:{extra}}}"
    )


def _list_in_go(values: tuple[str, ...]) -> str:
    return f"[]string{{{', '.join(map(quoted, values))}}}" if values else "[]string(nil)"
