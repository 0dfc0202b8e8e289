"""Changing the definition of a kind that a server serves already, and waiting for the effect."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from msgspec.structs import replace

from kubewright.api.apiextensions.v1 import (
    CustomResourceColumnDefinition,
    CustomResourceDefinition,
    CustomResourceDefinitionVersion,
)
from kubewright.api.dynamic import Dynamic
from kubewright.client import Client, MergePatch
from kubewright.client.errors import NotFound
from kubewright.testing.namespaces import unique_name

_TIMEOUT = 60.0


async def redefine(client: Client, definition: CustomResourceDefinition) -> None:
    """Change versions and conversion of an existing definition to these, and return when the server goes by them.

    That is a moment after they were written, and nothing shows when but what they define: a column that is there for
    so long.
    """
    probe = CustomResourceColumnDefinition(name=unique_name("probe"), type="string", json_path=".metadata.name")
    versions = definition.spec.versions
    await _write(client, definition, [_with_column(version, probe) for version in versions])
    async with asyncio.timeout(_TIMEOUT):
        for version in versions:
            if version.served:
                await _until_shown(client, definition, version.name, probe.name)
    await _write(client, definition, versions)


def _with_column(
    version: CustomResourceDefinitionVersion, column: CustomResourceColumnDefinition
) -> CustomResourceDefinitionVersion:
    return replace(version, additional_printer_columns=[*version.additional_printer_columns, column])


async def _write(
    client: Client, definition: CustomResourceDefinition, versions: list[CustomResourceDefinitionVersion]
) -> None:
    spec = {"versions": versions, "conversion": definition.spec.conversion}
    await client.patch(CustomResourceDefinition, definition.metadata.name, MergePatch({"spec": spec}))


async def _until_shown(client: Client, definition: CustomResourceDefinition, version: str, column: str) -> None:
    spec = definition.spec
    names, is_namespaced = spec.names, spec.scope == "Namespaced"
    kind = Dynamic.of(f"{spec.group}/{version}", names.kind, plural=names.plural, namespaced=is_namespaced)
    while True:
        with suppress(NotFound):  # a version that the definition did not have
            if any(each.name == column for each in (await client.table(kind)).column_definitions):
                return
        await asyncio.sleep(0.02)
