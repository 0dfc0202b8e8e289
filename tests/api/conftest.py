from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tools.generate_api.documents import SERVER_FLAGS, Document, fetch_documents

from kubewright.client.config.config import Config
from kubewright.client.session import Session
from kubewright.controlplane import BinariesNotFound, ControlPlane


@pytest.fixture(scope="session")
def beta_server() -> Iterator[Config]:
    """A real server with all beta kinds; the one other tests share serves what a production server does."""
    control_plane = ControlPlane.real(api_server_flags=SERVER_FLAGS)
    try:
        asyncio.run(control_plane.start())
    except BinariesNotFound as error:
        # The words by which the pytest plugin knows the tests that it must report as not run.
        pytest.skip(f"needs a real control plane: {error}")
    try:
        yield Config.from_kubeconfig_text(control_plane.kubeconfig())
    finally:
        asyncio.run(control_plane.stop())


@pytest.fixture(scope="session")
def documents(beta_server: Config) -> list[Document]:
    """The description that server gives of its API."""

    async def fetch() -> list[Document]:
        session = Session(beta_server)
        try:
            return await fetch_documents(session)
        finally:
            await session.aclose()

    return asyncio.run(fetch())
