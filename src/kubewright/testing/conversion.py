"""Having an API server convert the versions of a kind by a webhook, for as long as a test or a program wants it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from kubewright.api.admissionregistration.v1 import WebhookClientConfig
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.client import Client
from kubewright.client.errors import AlreadyExists
from kubewright.client.wait import established
from kubewright.testing.definitions import redefine
from kubewright.webhook import Versions, definition_with_conversion
from kubewright.webhook.conversion_definition import stop_conversion

_TIMEOUT = 60.0


@asynccontextmanager
async def converting(
    client: Client, versions: Versions, client_config: Callable[[str], WebhookClientConfig]
) -> AsyncIterator[None]:
    """While the block runs, the API server serves all versions of a kind, and calls the webhook to convert them.

    The definition stays, without the webhook.
    """
    definition = definition_with_conversion(versions, client_config)
    name = definition.metadata.name
    with suppress(AlreadyExists):
        await client.create(definition)
    try:
        await client.wait_for(CustomResourceDefinition, name, established, timeout=_TIMEOUT)
        await redefine(client, definition)
        yield
    finally:
        await stop_conversion(client, name)
