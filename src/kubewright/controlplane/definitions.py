"""CustomResourceDefinitions that a control plane starts with, from files, folders and classes.

As envtest's CRDDirectoryPaths: they are installed when the control plane starts, and it is ready once their kinds are
served. What is wrong with one is an `InvalidDefinition` that names the file, the document and the field.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.dynamic import Dynamic
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.resources import Object, resource_info
from kubewright.client import Client
from kubewright.client.arguments import check_kind
from kubewright.client.errors import APIError, DecodeError, NotFound
from kubewright.client.wait import condition, established
from kubewright.controlplane.errors import InvalidDefinition
from kubewright.manifest.crd import definition_of
from kubewright.manifest.documents import documents
from kubewright.manifest.errors import ManifestError

DefinitionSource: TypeAlias = str | os.PathLike[str] | type[Object] | CustomResourceDefinition
"""A file or folder of manifests, the class of a kind (one per version), or a definition."""

_GROUP: Final = "apiextensions.k8s.io"
_API_VERSION: Final = f"{_GROUP}/v1"
_KIND: Final = "CustomResourceDefinition"
_SUFFIXES: Final = (".json", ".yaml", ".yml")
_POLL_SECONDS: Final = 0.02


class LoadedDefinition(NamedTuple):
    """A definition and where it comes from."""

    where: str
    value: CustomResourceDefinition


def load_definitions(sources: Sequence[DefinitionSource]) -> list[LoadedDefinition]:
    """All definitions of the sources, in their order; classes of the same kind are versions of one definition.

    Of a folder, the YAML and JSON files are read, not its subfolders. Manifests of other kinds are left out, but a
    source without any definition is an error.
    """
    _check(sources)
    found: dict[str, LoadedDefinition] = {}
    for loaded in _all(sources):
        name = loaded.value.metadata.name
        if (other := found.setdefault(name, loaded)) is not loaded:
            raise InvalidDefinition(f"{loaded.where}: {name} is defined in {other.where}, too")
    return list(found.values())


async def install_definitions(client: Client, definitions: Sequence[LoadedDefinition], *, timeout: float) -> None:
    """Create the definitions, and return when discovery and the endpoints have every version that they serve."""
    for where, value in definitions:
        try:
            # Strict, as kubectl is: a misspelt field would be dropped otherwise.
            await client.create(value, field_validation="Strict")
        except APIError as error:
            raise InvalidDefinition(f"{where}: {error.status.message}") from None
    for definition in definitions:
        try:
            async with asyncio.timeout(timeout):
                await _served(client, definition)
        except TimeoutError:
            name = definition.value.metadata.name
            raise InvalidDefinition(f"{definition.where}: {name} was not served within {timeout:g} s") from None


def _check(sources: object) -> None:
    """Raise a TypeError that shows the fix unless it is a list of sources."""
    if isinstance(sources, str | os.PathLike | type | CustomResourceDefinition) or not isinstance(sources, Iterable):
        shown = sources.__name__ if isinstance(sources, type) else repr(sources)
        raise TypeError(f"definitions={shown}: expected a list, such as [{shown}]")
    for source in sources:
        if isinstance(source, type):
            check_kind(source, "definitions")
        elif not isinstance(source, str | os.PathLike | CustomResourceDefinition):
            raise TypeError(
                f"definitions: expected files, folders, classes of kinds or definitions, not a {type(source).__name__}"
            )


def _all(sources: Sequence[DefinitionSource]) -> Iterator[LoadedDefinition]:
    classes: dict[tuple[str, str], list[type[Object]]] = {}
    for source in sources:
        if isinstance(source, CustomResourceDefinition):
            yield LoadedDefinition(f"the definition {source.metadata.name}", source)
        elif isinstance(source, type):
            gvk = resource_info(source).gvk
            classes.setdefault((gvk.group, gvk.kind), []).append(source)
        else:
            yield from _in_path(Path(source))
    for versions in classes.values():
        names = ", ".join(f"{cls.__module__}.{cls.__qualname__}" for cls in versions)
        yield LoadedDefinition(names, definition_of(*versions))


def _in_path(path: Path) -> Iterator[LoadedDefinition]:
    try:
        files = [path]
        if path.is_dir():
            files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and file.is_file())
        found = [definition for file in files for definition in _in_file(file)]
    except OSError as error:
        raise InvalidDefinition(f"cannot read definitions from {path}: {error.strerror}") from None
    if not found:
        read = f"*{', *'.join(_SUFFIXES)}" if path.is_dir() else "a manifest"
        raise InvalidDefinition(f"there is no {_KIND} in {path} (expected one of {_API_VERSION} in {read})")
    yield from found


def _in_file(file: Path) -> Iterator[LoadedDefinition]:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InvalidDefinition(f"{file}: not YAML: it is not UTF-8") from None
    try:
        for where, value in documents(text, str(file)):
            if not isinstance(value, dict) or value.get("kind") != _KIND:
                continue
            api_version = value.get("apiVersion")
            if api_version != _API_VERSION:
                raise InvalidDefinition(f"{where}: apiVersion: expected {_API_VERSION}, found {api_version}")
            yield LoadedDefinition(where, from_json(CustomResourceDefinition, value))
    except ManifestError as error:
        raise InvalidDefinition(str(error)) from None
    except DecodeError as error:
        problem, _, field = str(error).partition(" - at `$.")
        raise InvalidDefinition(f"{where}: {field.removesuffix('`')}: {problem.rpartition(': ')[2]}") from None


async def _served(client: Client, definition: LoadedDefinition) -> None:
    where, value = definition
    spec = value.spec
    decided = established | condition("NamesAccepted", "False")
    seen = await client.wait_for(CustomResourceDefinition, value.metadata.name, decided)
    for each in seen.status.conditions if seen is not None else ():
        if each.type == "NamesAccepted" and each.status == "False":
            raise InvalidDefinition(f"{where}: spec.names: {each.message}")
    for version in spec.versions:
        if version.served:
            gvk = GroupVersionKind(spec.group, version.name, spec.names.kind)
            await _discovered(client, gvk, spec.names.plural)
            kind = Dynamic.of(
                gvk.api_version, gvk.kind, plural=spec.names.plural, namespaced=spec.scope == "Namespaced"
            )
            # The endpoint lags behind discovery, and the client waits for what a definition claims.
            await client.list(kind)


async def _discovered(client: Client, gvk: GroupVersionKind, plural: str) -> None:
    while True:
        try:
            if any(resource.name == plural for resource in await client.discover(gvk.api_version)):
                return
        except NotFound:
            pass  # not even its group and version
        await asyncio.sleep(_POLL_SECONDS)
