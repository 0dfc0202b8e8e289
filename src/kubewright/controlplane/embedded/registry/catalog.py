"""All that is served at this moment: built-in resources, and those that custom resource definitions add."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubewright.controlplane.embedded.registry.resources import ResourceType


class Catalog:
    """Finds a resource by group, version and plural. `generation` grows with every change, for caches."""

    def __init__(self, built_in: Iterable[ResourceType]) -> None:
        self._built_in = {_endpoint_of(resource): resource for resource in built_in}
        self._custom: dict[str, Sequence[ResourceType]] = {}
        self._all = dict(self._built_in)
        self._versions = {(group, version) for group, version, _ in self._all}
        self._built_in_groups = {group for group, _, _ in self._built_in}
        self.generation = 0

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        """The resource of that group, version and plural, if it is served."""
        return self._all.get((group, version, plural))

    def serves(self, group: str, version: str) -> bool:
        """Whether anything is served in that group and version."""
        return (group, version) in self._versions

    def is_built_in(self, group: str) -> bool:
        """Whether a group is one of Kubernetes' own, in any version."""
        return group in self._built_in_groups

    def find_kind(self, group: str, version: str, kind: str) -> ResourceType | None:
        """The resource of a kind, as owner references name it."""
        return next(
            (
                resource
                for resource in self._all.values()
                if (resource.gvk.group, resource.gvk.version, resource.gvk.kind) == (group, version, kind)
            ),
            None,
        )

    def all(self) -> Sequence[ResourceType]:
        """Everything that is served."""
        return list(self._all.values())

    def define(self, definition: str, resources: Sequence[ResourceType]) -> None:
        """Serve the resources of a custom resource definition (by name), instead of its previous ones."""
        self._custom[definition] = resources
        self._changed()

    def withdraw(self, definition: str) -> None:
        """Serve nothing of a custom resource definition any more."""
        if self._custom.pop(definition, None) is not None:
            self._changed()

    def _changed(self) -> None:
        self._all = dict(self._built_in)
        for resources in self._custom.values():
            self._all.update((_endpoint_of(resource), resource) for resource in resources)
        self._versions = {(group, version) for group, version, _ in self._all}
        self.generation += 1


def _endpoint_of(resource: ResourceType) -> tuple[str, str, str]:
    return resource.gvk.group, resource.gvk.version, resource.plural
