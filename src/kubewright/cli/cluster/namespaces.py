"""Whether a namespace can go with the operator: with it goes everything in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Final, NamedTuple

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.builtin import MODULES
from kubewright.api.dynamic import Dynamic, metadata_only
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.resources import Object
from kubewright.cli.cluster.plan import described
from kubewright.client import Client
from kubewright.client.errors import APIError, NoSuchKind, NotFound
from kubewright.deployment import Operator

_KUBERNETES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
# What Kubernetes has in every namespace, and what it writes there about other objects.
_EVERYWHERE: Final = (("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default"))
_ABOUT_OTHERS: Final = ("Event", "Endpoints")


class _Owner(NamedTuple):
    api_version: str
    kind: str
    name: str
    uid: str


async def reason_to_keep(
    client: Client, operator: Operator, namespace: str, going: Collection[Object], kept: Collection[Object]
) -> str:
    """Why a namespace is not deleted: it is Kubernetes' own, or has what is kept, or not of the operator. Empty if it
    can go.

    `going` are objects that go anyway, such as what the operator has made itself, and definitions with their objects.
    """
    if namespace in _KUBERNETES:
        return "it is Kubernetes' own"
    going_names, kept_names = {described(obj) for obj in going}, {described(obj) for obj in kept}
    owners: dict[_Owner, str] = {}
    try:
        async for kind in _kinds(client, going_names):
            for found in await _objects(client, kind, namespace):
                name, identity = found.metadata.name, f"{kind.__name__} {found.key}"
                if identity in kept_names:
                    return f"it has the {kind.__name__} {name}, which is kept"
                if operator.owns(found) or identity in going_names or (kind.__name__, name) in _EVERYWHERE:
                    continue
                if not found.metadata.owner_references:
                    return f"it has the {kind.__name__} {name}, which is not of this operator"
                for each in found.metadata.owner_references:
                    owner = _Owner(each.api_version, each.kind, each.name, each.uid)
                    owners.setdefault(owner, f"{kind.__name__} {name}")
        for owner, dependent in owners.items():
            if not _goes(owner, going) and await _is_elsewhere(client, owner):
                return f"it has the {dependent}, which is of the {owner.kind} {owner.name}"
    except APIError as error:  # it may not be listed, or cannot be, as a webhook of others does not answer
        return f"it may have what is not of this operator: {error}"
    return ""


def _goes(owner: _Owner, going: Collection[Object]) -> bool:
    """Whether an owner goes, itself or with its definition."""
    group = owner.api_version.rpartition("/")[0]
    return any(
        (obj.spec.group, obj.spec.names.kind) == (group, owner.kind)
        if isinstance(obj, CustomResourceDefinition)
        else obj.metadata.uid == owner.uid
        for obj in going
    )


async def _is_elsewhere(client: Client, owner: _Owner) -> bool:
    """Whether an owner is in no namespace, and so is not found itself. What has lost its owner goes."""
    try:
        served = await client.discover(owner.api_version)
    except NotFound:
        return True  # of a kind that is not served now, so that nobody knows
    for each in served:
        if each.kind == owner.kind and "/" not in each.name:
            kind = Dynamic.of(owner.api_version, owner.kind, plural=each.name, namespaced=each.namespaced)
            found = None if each.namespaced else await client.find(metadata_only(kind), owner.name)
            return found is not None and found.metadata.uid == owner.uid
    return True


async def _objects(client: Client, kind: type[Dynamic], namespace: str) -> Sequence[Object]:
    """None of a kind that is defined and not served: its names were refused, or its definition is being deleted."""
    try:
        return await client.list(metadata_only(kind), namespace=namespace)
    except NoSuchKind:
        return []


async def _kinds(client: Client, going: Collection[str]) -> AsyncIterator[type[Dynamic]]:
    """Each kind that objects in a namespace may have, but for those whose definitions are going."""
    seen: set[tuple[str, str]] = set()
    for api_version in reversed(MODULES):  # the core first
        try:
            served = await client.discover(api_version)
        except NotFound:
            continue
        group = GroupVersionKind.parse(api_version, "*").group
        for each in served:
            can_go = "/" not in each.name and {"list", "delete"} <= {*each.verbs}
            if each.namespaced and can_go and each.kind not in _ABOUT_OTHERS and (group, each.kind) not in seen:
                seen.add((group, each.kind))
                yield Dynamic.of(api_version, each.kind, plural=each.name, namespaced=True)
    for definition in await client.list(CustomResourceDefinition):
        spec = definition.spec
        versions = [version.name for version in spec.versions if version.served]
        if spec.scope == "Namespaced" and versions and described(definition) not in going:
            api_version = f"{spec.group}/{versions[0]}"
            yield Dynamic.of(api_version, spec.names.kind, plural=spec.names.plural, namespaced=True)
