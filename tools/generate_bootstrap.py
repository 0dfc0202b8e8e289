"""The command: `python -m tools.generate_bootstrap [--kubeconfig FILE]`.

Writes the roles and bindings and the settings of flow control that kube-apiserver makes when it starts, without what
the server fills in, and without the rules of roles that are made of others: those are computed when the file is read.
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
from kubewright.api.flowcontrol.v1 import FlowSchema, PriorityLevelConfiguration
from kubewright.api.markers import JSONObject
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from kubewright.api.resources import Object
from kubewright.client import Client, Config
from kubewright.controlplane import ControlPlane, ControlPlaneError
from kubewright.controlplane.embedded.apimachinery.document import mapping

_EMBEDDED = Path(__file__).parents[1] / "src/kubewright/controlplane/embedded"
_FILES: dict[str, tuple[type[Object], ...]] = {
    "auth/bootstrap.json": (ClusterRole, ClusterRoleBinding, Role, RoleBinding),
    "builtins/flow_control.json": (PriorityLevelConfiguration, FlowSchema),
}
_KEPT = ("name", "namespace", "labels", "annotations")


def main() -> int:
    """Write the files; 1 when the server cannot be reached."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.generate_bootstrap",
        description="Writes the roles, bindings and flow control of a new kube-apiserver for the embedded one.",
        epilog="example: python -m tools.generate_bootstrap   (starts a control plane of its own)",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="ask this server, a new one, instead of starting one")
    try:
        written = asyncio.run(_objects(parser.parse_args().kubeconfig))
    except (KubernetesError, ControlPlaneError) as error:
        print(f"kubewright: cannot generate what a server begins with: {error}", file=sys.stderr)
        return 1
    for name, objects in written.items():
        lines = ",\n".join(msgspec.json.encode(found).decode() for found in objects)
        (_EMBEDDED / name).write_text(f"[\n{lines}\n]\n")
        print(f"wrote {len(objects)} objects to {_EMBEDDED / name}")
    return 0


async def _objects(kubeconfig: str | None) -> dict[str, list[JSONObject]]:
    async with _config(kubeconfig) as config, Client(config) as client:
        return {
            name: [_as_created(item) for kind in kinds for item in await client.list(kind, namespace="")]
            for name, kinds in _FILES.items()
        }


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
        computed = name == "status" or (name == "rules" and "aggregationRule" in found)
        if name not in created and not computed and value is not None:
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
