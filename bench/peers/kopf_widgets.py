"""The peer on kopf: the operator of the Widget workload, with the server in KUBECONFIG. Run it as a program.

Handlers are plain functions with the official client, as kopf's own documentation has them. 16 objects are worked on
at once. By default there is no such limit: it then opened a connection for every Widget and took 420 MB instead of 160,
and a little more CPU.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache

import kopf
import kubernetes


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: object) -> None:
    """As many objects at once as the others have workers; all else, the login of the client included, by default."""
    settings.execution.max_workers = 16
    settings.queueing.worker_limit = 16
    # A worker belongs to one object and counts until it has been idle for this long.
    settings.queueing.idle_timeout = 0.01


@cache
def _core() -> kubernetes.client.CoreV1Api:
    """One for all: each of its own would mean new connections, and reading the certificates again, for every Widget."""
    return kubernetes.client.CoreV1Api()


@kopf.on.create("bench.example.com", "v1", "widgets")
@kopf.on.update("bench.example.com", "v1", "widgets", field="spec")
def write_child(
    name: str,
    namespace: str | None,
    spec: kopf.Spec,
    meta: kopf.Meta,
    status: kopf.Status,
    patch: kopf.Patch,
    **_: object,
) -> None:
    """Keep one ConfigMap per Widget and tell in the status for which generation that was done."""
    if namespace is None:
        raise kopf.PermanentError("a Widget is in a namespace")
    child = kubernetes.client.V1ConfigMap(
        metadata=kubernetes.client.V1ObjectMeta(name=name),
        data={"size": str(spec["size"]), "payload": spec.get("payload", "")},
    )
    kopf.adopt(child)
    try:
        _core().create_namespaced_config_map(namespace, child)
    except kubernetes.client.ApiException as error:
        if error.status != 409:
            raise
        _core().replace_namespaced_config_map(name, namespace, child)
    generation = meta["generation"]
    if status.get("observedGeneration") == generation:
        return
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "ConfigMapWritten",
        "message": "the ConfigMap is as the spec says",
        "observedGeneration": generation,
        "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    patch.status["observedGeneration"] = generation
    patch.status["conditions"] = [condition]


if __name__ == "__main__":
    kopf.run(standalone=True, clusterwide=True)
