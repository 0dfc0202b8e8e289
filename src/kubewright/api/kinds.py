"""The names of kinds and objects."""

# Annotations are types here, not text: a NamedTuple would compile each of them.

from typing import NamedTuple, Self


class GroupVersionKind(NamedTuple):
    """A kind in one version of its API group. The core group is the empty string."""

    group: str
    version: str
    kind: str

    @classmethod
    def parse(cls, api_version: str, kind: str) -> Self:
        """From the two fields every object carries, such as `apps/v1` and `Deployment`."""
        group, slash, version = api_version.rpartition("/")
        if not version or not kind or (slash and not group) or "/" in group:
            raise ValueError(
                f'"{api_version}", kind "{kind}" does not name a kind: expected an apiVersion such as "v1" or '
                f'"apps/v1" and a kind such as "Deployment"'
            )
        return cls(group, version, kind)

    @property
    def api_version(self) -> str:
        """`group/version`, or just the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


class ObjectKey(NamedTuple):
    """Identifies an object of a kind. `namespace` is empty for cluster-scoped kinds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
