"""Events, recorded without a control plane."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.manager.event_server import EventServer, ManualTime

from kubewright.client import Client, Config
from kubewright.manager.recorder import EventBroadcaster

# Their failed assertions are shown in full only if pytest knows of them before they are imported.
pytest.register_assert_rewrite("tests.manager.exposition_text", "tests.manager.scripted")


@pytest.fixture
def time() -> ManualTime:
    return ManualTime()


@pytest.fixture
def server() -> EventServer:
    return EventServer()


@pytest.fixture
async def broadcaster(time: ManualTime, server: EventServer) -> AsyncIterator[EventBroadcaster]:
    async with Client(Config(server="http://events.test"), transport=server) as client:
        yield EventBroadcaster(client, instance="operator-0", now=time.now)
