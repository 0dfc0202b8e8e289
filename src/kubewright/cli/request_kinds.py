"""The kinds of requests that a cluster has: those whose status is a `RequestStatus`.

The schema of its status shows it: phases of exactly these names, the rule that only lets them go forward, by which the
server keeps those final that are deleted here, and a completion time. The schema is in the definition; a user who may
not read definitions names kinds as PLURAL.VERSION.GROUP, as kubectl does, and it is in the server's OpenAPI document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, get_args

from msgspec import Struct

from kubewright.api.apiextensions.v1 import (
    CustomResourceDefinition,
    CustomResourceDefinitionVersion,
    JSONSchemaProps,
)
from kubewright.api.codec import decode_model, encode
from kubewright.api.dynamic import Dynamic
from kubewright.api.errors import KubernetesError
from kubewright.cli.suggestion import did_you_mean
from kubewright.client import Client
from kubewright.client.errors import Forbidden, NotFound
from kubewright.client.paths import may_be_custom
from kubewright.manager.permissions import Permission, explain, missing_permissions
from kubewright.patterns.request_status import ONLY_FORWARD, Phase

_VERSION: Final = r"v\d+((alpha|beta)\d+)?"

PHASES: Final[tuple[str, ...]] = get_args(Phase)


class KindOfRequests(Struct, frozen=True):
    """A kind of requests, and the names that it goes by."""

    kind: type[Dynamic]
    name: str
    """PLURAL.GROUP"""
    is_namespaced: bool
    names: frozenset[str] = frozenset()
    """In lower case: the kind, the plural, the singular, short names."""


async def request_kinds(client: Client, names: Sequence[str]) -> list[KindOfRequests]:
    """The kinds of these names, or all. Raises `KubernetesError` for a name that is not of a kind of requests."""
    if names and all("." in name for name in names):
        return [*dict.fromkeys([await _by_full_name(client, name) for name in names])]
    found = await _defined(client)
    return [*dict.fromkeys(_named(name, found) for name in names)] if names else found


async def _by_full_name(client: Client, name: str) -> KindOfRequests:
    plural, version, group = _parsed(name)
    try:
        definition = await client.find(CustomResourceDefinition, f"{plural}.{group}")
    except Forbidden:
        if not version:
            raise await _unreadable(client, f"{plural}.v1.{group}") from None
        return await _discovered(client, plural, version, group)
    if definition is None:
        known = [kind.name for kind in await _defined(client)]
        raise KubernetesError(
            f"there are no {plural}.{group}{did_you_mean(f'{plural}.{group}', known)}{_listed(known)}"
        )
    found = _version(definition, version)
    if found is None:
        raise _not_requests(name)
    return _kind_of(definition, found)


def _not_requests(name: str) -> KubernetesError:
    return KubernetesError(
        f"{name} are not requests: their status is not defined as a kubewright.patterns.RequestStatus, with the phases "
        f"{', '.join(PHASES)}, a rule that lets them only go forward, and a completionTime"
    )


def _parsed(name: str) -> tuple[str, str, str]:
    """Plural, version and group of PLURAL.GROUP, without a version, or PLURAL.VERSION.GROUP."""
    plural, _, rest = name.partition(".")
    version, _, group = rest.partition(".")
    return (plural, version, group) if group and re.fullmatch(_VERSION, version) else (plural, "", rest)


async def _discovered(client: Client, plural: str, version: str, group: str) -> KindOfRequests:
    """By what every user may read: discovery, and the schemas that the server publishes."""
    if not may_be_custom(group):
        raise KubernetesError(f"{plural}.{group} are Kubernetes' own, and not requests")
    for resource in await client.discover(f"{group}/{version}"):
        if resource.name == plural:
            if not _is_of_requests(await _published(client, f"{group}/{version}", resource.kind)):
                raise _not_requests(f"{plural}.{version}.{group}")
            kind = Dynamic.of(f"{group}/{version}", resource.kind, plural=plural, namespaced=resource.namespaced)
            return KindOfRequests(kind, f"{plural}.{group}", resource.namespaced)
    raise KubernetesError(f"the server has no {plural} in {group}/{version}; is their definition installed?")


async def _published(client: Client, api_version: str, kind: str) -> JSONSchemaProps:
    """The schema of a kind, as the server publishes it."""
    unknown = f"whether {kind} is a kind of requests is not known: the server does not publish its schema (yet)"
    try:
        schema = (await client.schemas(api_version)).get(kind)
    except NotFound as error:
        raise KubernetesError(unknown) from error
    if schema is None:
        raise KubernetesError(unknown)
    return decode_model(JSONSchemaProps, encode(schema))


async def _defined(client: Client) -> list[KindOfRequests]:
    """Those of all definitions."""
    try:
        definitions = await client.list(CustomResourceDefinition)
    except Forbidden:
        raise await _unreadable(client, "grants.v1.user.example.com") from None
    found = [(definition, _version(definition)) for definition in definitions]
    return [_kind_of(definition, version) for definition, version in found if version is not None]


async def _unreadable(client: Client, example: str) -> KubernetesError:
    missing = await missing_permissions(client, [Permission(CustomResourceDefinition, "get", "list")])
    return KubernetesError(
        "which kinds are requests shows in definitions, and these may not be read: name kinds as PLURAL.VERSION.GROUP, "
        f"such as {example}\n{explain(missing)}"
    )


def _named(name: str, found: Sequence[KindOfRequests]) -> KindOfRequests:
    matching = [kind for kind in found if name.lower() in kind.names or name == kind.name]
    if len(matching) > 1:
        raise KubernetesError(f'"{name}" may be {" or ".join(kind.name for kind in matching)}: write one of these')
    if not matching:
        known = [each for kind in found for each in kind.names]
        listed = _listed([kind.name for kind in found])
        raise KubernetesError(f'there are no requests called "{name}"{did_you_mean(name.lower(), known)}{listed}')
    return matching[0]


def _listed(known: Iterable[str]) -> str:
    return f" (kinds of requests: {', '.join(known) or 'none'})"


def _version(definition: CustomResourceDefinition, name: str = "") -> CustomResourceDefinitionVersion | None:
    """The version to read objects in, if they are requests: that of a name, or else the one that is stored."""
    served = [version for version in definition.spec.versions if version.served and name in ("", version.name)]
    served.sort(key=lambda version: not version.storage)
    if not served or served[0].schema is None:
        return None
    return served[0] if _is_of_requests(served[0].schema.open_apiv3_schema) else None


def _is_of_requests(schema: JSONSchemaProps | None) -> bool:
    status = schema.properties.get("status") if schema is not None else None
    if status is None or not {"phase", "completionTime"} <= status.properties.keys():
        return False
    is_final = any(each.rule == ONLY_FORWARD.rule for each in status.x_kubernetes_validations)
    return is_final and set(status.properties["phase"].enum) == {*PHASES}


def _kind_of(definition: CustomResourceDefinition, version: CustomResourceDefinitionVersion) -> KindOfRequests:
    spec = definition.spec
    is_namespaced = spec.scope == "Namespaced"
    kind = Dynamic.of(
        f"{spec.group}/{version.name}", spec.names.kind, plural=spec.names.plural, namespaced=is_namespaced
    )
    names = (spec.names.kind, spec.names.plural, spec.names.singular or "", *spec.names.short_names)
    return KindOfRequests(
        kind, f"{spec.names.plural}.{spec.group}", is_namespaced, frozenset(name.lower() for name in names if name)
    )
