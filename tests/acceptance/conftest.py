"""The manager that an operator's test adds its controllers to."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kubewright import ControlPlane, Manager


@pytest.fixture
async def manager(control_plane: ControlPlane, namespace: str) -> AsyncIterator[Manager]:
    """A manager of the test's own namespace, with connections of its own."""
    async with control_plane.client() as client:
        yield Manager(client, namespaces=[namespace])
