"""The command: `python -m tools.record_answers`. It starts a control plane of its own; see `make control-plane`."""

from __future__ import annotations

import asyncio
import json
import sys

from tools.record_answers import ANSWERS, questions
from tools.record_answers.asking import Asker

from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.errors import KubernetesError
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, Config
from kubewright.controlplane import ControlPlane, ControlPlaneError

_NAMESPACE = "answers"


def main() -> int:
    """Write the answers; 1 when the server cannot be reached."""
    try:
        recorded = asyncio.run(_recorded())
    except (KubernetesError, ControlPlaneError) as error:
        print(f"kubewright: cannot record what kube-apiserver answers: {error}", file=sys.stderr)
        return 1
    lines = (f"{json.dumps(title)}: {json.dumps(answer)}" for title, answer in recorded.items())
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"wrote {len(recorded)} answers to {ANSWERS}")
    return 0


async def _recorded() -> dict[str, JSONValue]:
    async with (
        ControlPlane.real() as control_plane,
        Client(Config.from_kubeconfig_text(control_plane.kubeconfig())) as client,
    ):
        await client.create(Namespace(metadata=ObjectMeta(name=_NAMESPACE)))
        await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace=_NAMESPACE)))
        asker = Asker(client._operations.session, _NAMESPACE)
        return {question.title: await asker.ask(question) for question in questions()}


if __name__ == "__main__":
    sys.exit(main())
