"""The command: `python -m tools.generate_bootstrap [--kubeconfig FILE]`.

Writes the roles and bindings that kube-apiserver makes when it starts, without what the server fills in, and without
the rules of roles that are made of others: those are computed when the file is read.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from kubewright.api.codec import decode_json, origin
from kubewright.api.errors import KubernetesError
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from kubewright.api.resource import Object
from kubewright.client import Client, Config
from kubewright.controlplane import ControlPlane, ControlPlaneError
from kubewright.controlplane.embedded.document import JSONObject, mapping

_FILE = Path(__file__).parents[1] / "src/kubewright/controlplane/embedded/auth/bootstrap.json"
_KEPT = ("name", "namespace", "labels", "annotations")


def main() -> int:
    """Write the file; 1 when the server cannot be asked."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.generate_bootstrap",
        description="Writes the roles and bindings of a new kube-apiserver for the embedded one.",
        epilog="example: python -m tools.generate_bootstrap   (starts a control plane of its own)",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="ask this server, a new one, instead of starting one")
    try:
        objects = asyncio.run(_objects(parser.parse_args().kubeconfig))
    except (KubernetesError, ControlPlaneError) as error:
        print(f"kubewright: cannot generate the bootstrap roles: {error}", file=sys.stderr)
        return 1
    lines = ",\n".join(msgspec.json.encode(found).decode() for found in objects)
    _FILE.write_text(f"[\n{lines}\n]\n")
    print(f"wrote {len(objects)} objects to {_FILE}")
    return 0


async def _objects(kubeconfig: str | None) -> list[JSONObject]:
    async with _config(kubeconfig) as config, Client(config) as client:
        found = [
            *await client.list(ClusterRole, namespace=""),
            *await client.list(ClusterRoleBinding, namespace=""),
            *await client.list(Role, namespace=""),
            *await client.list(RoleBinding, namespace=""),
        ]
    return [_as_created(item) for item in found]


def _as_created(item: Object) -> JSONObject:
    # What the server sent, not what the type makes of it: that has an empty list for every list that is absent.
    found = mapping(decode_json(origin(item) or b"{}"))
    metadata = mapping(found, "metadata")
    created: JSONObject = {
        "apiVersion": item.api_version,
        "kind": item.kind,
        "metadata": {name: metadata[name] for name in _KEPT if metadata.get(name)},
    }
    for name, value in found.items():
        if name not in created and not (name == "rules" and "aggregationRule" in found) and value is not None:
            created[name] = value
    return created


@asynccontextmanager
async def _config(kubeconfig: str | None) -> AsyncIterator[Config]:
    if kubeconfig is not None:
        yield Config.from_kubeconfig(kubeconfig)
        return
    async with ControlPlane.real() as control_plane:
        yield Config.from_kubeconfig_text(control_plane.kubeconfig())


if __name__ == "__main__":
    sys.exit(main())
