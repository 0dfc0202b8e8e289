"""Which kinds a server serves: its own, from discovery, and those of custom resource definitions, as they appear."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.builtin import MODULES
from kubewright.api.dynamic import Dynamic, PartialObject, metadata_only
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import GroupVersionKind
from kubewright.client import Client
from kubewright.client.errors import NotFound
from kubewright.controlplane.embedded.endpoints.discovery import version_priority
from kubewright.patterns.conditions import is_true

_EVERY_VERB = frozenset(
    ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"),
)


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A kind, in the versions in which it is served: the server's preferred one first."""

    group: str
    kind: str
    plural: str
    namespaced: bool
    versions: tuple[str, ...]
    verbs: frozenset[str]

    @property
    def view(self) -> type[PartialObject]:
        """The metadata of its objects, in the preferred version."""
        return self.view_in(self.versions[0])

    def view_in(self, version: str) -> type[PartialObject]:
        """The metadata of its objects, in one of the versions."""
        api_version = GroupVersionKind(self.group, version, self.kind).api_version
        return metadata_only(Dynamic.of(api_version, self.kind, plural=self.plural, namespaced=self.namespaced))

    def __str__(self) -> str:
        return f"{self.group}/{self.versions[0]}, Resource={self.plural}"


@dataclass(frozen=True, slots=True)
class Discovered:
    """The kinds that discovery listed, and the versions for which it failed."""

    kinds: tuple[ServedKind, ...]
    failures: Mapping[str, KubernetesError]


async def discover(client: Client) -> Discovered:
    """The kinds of Kubernetes itself that the server serves. Custom resources are not among them."""
    found: dict[tuple[str, str], ServedKind] = {}
    failures: dict[str, KubernetesError] = {}
    group_versions = [GroupVersionKind.parse(api_version, "*") for api_version in MODULES]
    for group_version in sorted(
        group_versions, key=lambda group_version: (group_version.group, version_priority(group_version.version))
    ):
        try:
            resources = await client.discover(group_version.api_version)
        except NotFound:
            continue
        except KubernetesError as error:
            failures[group_version.api_version] = error
            continue
        for resource in resources:
            if "/" in resource.name:
                continue
            before = found.get((group_version.group, resource.name))
            found[group_version.group, resource.name] = ServedKind(
                group_version.group,
                resource.kind,
                resource.name,
                resource.namespaced,
                (*before.versions, group_version.version) if before else (group_version.version,),
                before.verbs if before else frozenset(resource.verbs),
            )
    return Discovered(tuple(found.values()), failures)


def defined_by(definition: CustomResourceDefinition) -> ServedKind | None:
    """The kind of a definition; None while it is not served."""
    served = [version.name for version in definition.spec.versions if version.served]
    if not is_true(definition, "Established") or not served:
        return None
    return ServedKind(
        definition.spec.group,
        definition.spec.names.kind,
        definition.spec.names.plural,
        definition.spec.scope == "Namespaced",
        tuple(sorted(served, key=version_priority)),
        _EVERY_VERB,
    )
