"""Registering webhooks by URL: a program on the machine of a developer, which no Service leads to.

With `webhook_url` ("https://127.0.0.1:9443", `--webhook-url`) a manager has the API server call its webhooks while it
runs. What registers them is applied when they are served, with the authority that was made at this start, and taken
away at the end: an API server that calls a program which is gone refuses all that the webhooks are for.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from contextlib import AsyncExitStack

from kubewright.api.admissionregistration.v1 import WebhookClientConfig
from kubewright.manager import Manager
from kubewright.webhook.configuration import configurations
from kubewright.webhook.conversion_definition import definition_with_conversion, stop_conversion
from kubewright.webhook.serving import versions_of, webhooks_of

_log = logging.getLogger(__name__)


class DevelopmentRegistration:
    """Has the API server call the webhooks of a manager by its URL, while `run` does."""

    needs_leader = False

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    async def run(self) -> None:
        """Register them once they are served, and take that back when cancelled."""
        manager, client = self._manager, self._manager.live
        await manager.webhooks_served.wait()
        async with AsyncExitStack() as registered:
            name = f"{manager.name}-development"
            for configuration in configurations(name, webhooks_of(manager), self._client_config):
                registered.push_async_callback(client.delete, configuration, missing_ok=True)
                await client.apply(configuration, force=True)
            for versions in versions_of(manager):
                definition = definition_with_conversion(versions, self._client_config)
                registered.push_async_callback(stop_conversion, client, definition.metadata.name)
                await client.apply(definition, force=True)
            _log.info("the API server calls the webhooks of %s at %s", manager.name, manager.webhook_url)
            await asyncio.Event().wait()

    def _client_config(self, path: str) -> WebhookClientConfig:
        bundle = b64encode(self._manager.webhook_authority.encode()).decode()
        return WebhookClientConfig(url=f"{self._manager.webhook_url}{path}", ca_bundle=bundle)
