"""Definitions of kinds that are no longer converted.

The operator has put its authorities into the webhook that converts a kind, and owns them. Were the definition applied
without the webhook, nothing but these would be left of it, which servers refuse. So they are taken over first, which
changes no value, and go with all that is applied no more.
"""

from __future__ import annotations

import copy
from typing import TypeAlias, cast

from msgspec import Raw
from msgspec.json import decode, encode
from msgspec.structs import replace

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import to_json
from kubewright.api.meta import ManagedFieldsEntry
from kubewright.api.resources import Object
from kubewright.cli.cluster.target import FIELD_MANAGER
from kubewright.client import Client, MergePatch

_Fields: TypeAlias = "dict[str, _Fields]"


def with_dropped_conversion(wanted: Object, live: Object | None) -> Object:
    """What is wanted, with the conversion that is there and is to go: no dry run without it would be accepted. The same
    object where there is none.
    """
    if not isinstance(wanted, CustomResourceDefinition) or not isinstance(live, CustomResourceDefinition):
        return wanted
    if not converts(live) or converts(wanted):
        return wanted
    converted = copy.deepcopy(wanted)
    converted.spec.conversion = live.spec.conversion
    return converted


async def take_over_dropped_conversion(client: Client, wanted: Object) -> None:
    """Own all fields of the conversion that is there and is to go, if there is one."""
    live = await client.find(wanted) if isinstance(wanted, CustomResourceDefinition) else None
    if live is None or with_dropped_conversion(wanted, live) is wanted:
        return
    ours = ManagedFieldsEntry(
        manager=FIELD_MANAGER, operation="Apply", api_version=live.api_version, fields_type="FieldsV1"
    )
    owned: _Fields = {}
    taken: _Fields = {}
    entries: list[ManagedFieldsEntry] = []
    for entry in live.metadata.managed_fields:
        fields = cast(_Fields, decode(entry.fields_v1))
        taken = _merged(taken, fields.get("f:spec", {}).pop("f:conversion", {}))
        if not fields.get("f:spec", fields):
            del fields["f:spec"]
        if (entry.manager, entry.operation) == (ours.manager, ours.operation):
            ours, owned = entry, fields
        elif fields:
            entries.append(replace(entry, fields_v1=Raw(encode(fields))))
    owned.setdefault("f:spec", {})["f:conversion"] = taken
    entries.append(replace(ours, fields_v1=Raw(encode(owned))))
    metadata = {
        "resourceVersion": live.metadata.resource_version,
        "managedFields": [to_json(entry) for entry in entries],
    }
    await client.patch(live, MergePatch({"metadata": metadata}))


def converts(definition: CustomResourceDefinition) -> bool:
    """Whether it has a webhook for that."""
    return definition.spec.conversion is not None and definition.spec.conversion.webhook is not None


def _merged(one: _Fields, other: _Fields) -> _Fields:
    return {name: _merged(one.get(name, {}), other.get(name, {})) for name in one.keys() | other.keys()}
