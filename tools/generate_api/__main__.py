"""The command: `python -m tools.generate_api [--kubeconfig FILE]`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tools.generate_api.descriptions import descriptions
from tools.generate_api.documents import SERVER_FLAGS, Document, fetch_documents
from tools.generate_api.source import generate, write

from kubewright.api.errors import KubernetesError
from kubewright.client.config.config import Config
from kubewright.client.session import Session
from kubewright.controlplane import ControlPlane, ControlPlaneError

_PACKAGE = Path(__file__).parents[2] / "src/kubewright"
_FOLDER = _PACKAGE / "api"
_DESCRIPTIONS = _PACKAGE / "controlplane/embedded/openapi/descriptions.json.zlib"


def main() -> int:
    """Write the modules of all kinds, and what describes them; 1 when the server cannot be reached."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.generate_api",
        description="Writes src/kubewright/api/<group>/<version>.py from what the pinned kube-apiserver serves.",
        epilog="example: python -m tools.generate_api   (starts a control plane of its own; see `make control-plane`)",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="ask this server instead of starting one")
    try:
        documents = asyncio.run(_documents(parser.parse_args().kubeconfig))
    except (KubernetesError, ControlPlaneError) as error:
        print(f"kubewright: cannot generate the built-in kinds: {error}", file=sys.stderr)
        return 1
    files = generate(documents)
    write(files, _FOLDER)
    print(f"wrote {len(files)} files in {_FOLDER}")
    _DESCRIPTIONS.write_bytes(descriptions(documents))
    print(f"wrote {_DESCRIPTIONS}")
    return 0


async def _documents(kubeconfig: str | None) -> list[Document]:
    async with _config(kubeconfig) as config:
        session = Session(config)
        try:
            return await fetch_documents(session)
        finally:
            await session.aclose()


@asynccontextmanager
async def _config(kubeconfig: str | None) -> AsyncIterator[Config]:
    if kubeconfig is not None:
        yield Config.from_kubeconfig(kubeconfig)
        return
    async with ControlPlane.real(api_server_flags=SERVER_FLAGS) as control_plane:
        yield Config.from_kubeconfig_text(control_plane.kubeconfig())


if __name__ == "__main__":
    sys.exit(main())
