"""Which module a structure is written to.

A group version is a module. That of the core group, which is many groups in one, is a package with a module for each
kind, so that a program makes only the structures it uses: a class takes as long to make as hundreds of objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tools.generate_api.kinds import Kinds

from kubewright.api.naming import python_name

# Where the first label of a group is the name of a module of ours, the whole group names the package.
_PACKAGES = {"": "core", "resource.k8s.io": "resource_k8s_io"}
_BY_KIND = ("core", "v1")


class Module(NamedTuple):
    """A generated module; `kind` is that of a group version with a module for each."""

    package: str
    version: str
    kind: str = ""

    @property
    def path(self) -> str:
        """The file, below `kubewright/api`."""
        return f"{'/'.join(filter(None, self))}.py"


def package_of(group: str) -> str:
    """The package of an API group: `rbac` for `rbac.authorization.k8s.io`."""
    return _PACKAGES.get(group) or group.partition(".")[0]


def short_name(schema: str) -> str:
    """The name of a structure in its module: `Pod` for `io.k8s.api.core.v1.Pod`."""
    return schema.rpartition(".")[2]


def modules_of(kinds: Kinds) -> dict[str, Module]:
    """The module of each structure, by the name of its schema."""
    packages = {_go_package(name): package_of(kind.gvk.group) for name, kind in kinds.by_schema.items()}
    modules = {name: Module(packages[_go_package(name)], name.split(".")[-2]) for name in kinds.structures}
    large = {name for name, module in modules.items() if module == (*_BY_KIND, "")}
    homes = _smallest_kinds({name: kinds.parts(name) & large for name in large})
    return modules | {name: Module(*_BY_KIND, python_name(short_name(home))) for name, home in homes.items()}


def _smallest_kinds(parts: Mapping[str, set[str]]) -> dict[str, str]:
    """For each structure the smallest of those that have it and are part of no other: mostly a kind.

    What a structure has is then in its own module or in that of a smaller kind, so that no two import each other.
    """
    roots = sorted(parts.keys() - {part for name in parts for part in parts[name] - {name}})
    by_size = sorted(roots, key=lambda root: len(parts[root]))
    return {name: next(root for root in by_size if name in parts[root]) for name in sorted(parts)}


def _go_package(schema: str) -> str:
    return schema.rsplit(".", 2)[0]
