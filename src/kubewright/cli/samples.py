"""The objects in the folder beside a module, to try its operator with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, cast

from kubewright.api.codec import from_json, to_json
from kubewright.api.dynamic import Dynamic
from kubewright.api.errors import DecodeError
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.resources import Object, resource_info
from kubewright.cli.loading import LoadedObject
from kubewright.cli.suggestion import did_you_mean
from kubewright.cli.text_file import text_of
from kubewright.deployment import Operator
from kubewright.deployment.extensions import definitions
from kubewright.manifest.documents import documents
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.keywords import Schema
from kubewright.manifest.unknown_fields import unknown_fields

SAMPLES: Final = "samples"
"""The folder beside a module that has the samples."""


class _Kind(NamedTuple):
    type: type[Object]
    schema: Schema | None


def samples_of(named: LoadedObject, operator: Operator) -> Iterator[Object]:
    """The objects in its files, as they are written. Those of its own kinds fit their types and have known fields."""
    folder = Path(named.module.__file__ or "").parent / SAMPLES
    files = sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")])
    kinds = _kinds(operator) if files else {}
    for file in files:
        for where, value in documents(text_of(file), str(file)):
            if not isinstance(value, dict) or not (value.get("apiVersion") and value.get("kind")):
                raise ManifestError(f"{where}: a sample needs apiVersion and kind")
            try:
                gvk = GroupVersionKind.parse(str(value["apiVersion"]), str(value["kind"]))
                kind = kinds.get(gvk, _Kind(Dynamic, None))
                sample = from_json(kind.type, value)
                _check_version(gvk, kinds)
                for unknown in unknown_fields(kind.schema, value) if kind.schema is not None else ():
                    meant = did_you_mean(unknown.name, unknown.known)
                    raise ManifestError(f"{where}: {sample.kind} {sample.key} has no field {unknown.path}{meant}")
                yield from_json(Dynamic, value)
            except (ValueError, DecodeError) as error:
                raise ManifestError(f"{where}: {error}") from None


def _kinds(operator: Operator) -> dict[GroupVersionKind, _Kind]:
    """Its own kinds in all of their versions."""
    types = {resource_info(kind).gvk: kind for kind in operator.kinds}
    found: dict[GroupVersionKind, _Kind] = {}
    for definition in definitions(operator):
        for version in definition.spec.versions:
            gvk = GroupVersionKind(definition.spec.group, version.name, definition.spec.names.kind)
            schema = to_json(version.schema.open_apiv3_schema) if version.schema is not None else {}
            found[gvk] = _Kind(types.get(gvk, Dynamic), cast(Schema, schema))
    return found


def _check_version(gvk: GroupVersionKind, kinds: Mapping[GroupVersionKind, _Kind]) -> None:
    """Raise `ValueError` for a version that its kind does not have."""
    known = [each.version for each in kinds if (each.group, each.kind) == (gvk.group, gvk.kind)]
    if known and gvk.version not in known:
        raise ValueError(f"{gvk.kind} of {gvk.group} has no version {gvk.version} (versions: {', '.join(known)})")
