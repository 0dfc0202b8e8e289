"""The peer on kopf: the operator of the Widget workload, with the server in KUBECONFIG. Run it as a program.

Handlers are plain functions with the official client, as kopf's own documentation has them: each call makes its client
and, with it, a connection. 16 of them run at once. With KOPF_TUNED=true there is one client for all, and as many
objects are worked on at once as there are threads for them: as tuned by a user who has profiled it.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import cache

import kopf
import kubernetes

_IS_TUNED = os.environ.get("KOPF_TUNED") == "true"


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: object) -> None:
    """As many threads as the others have workers; all else, the login of the client included, by default."""
    settings.execution.max_workers = 16
    if _IS_TUNED:
        settings.queueing.worker_limit = 16
        # A worker belongs to one object and counts until it has been idle for this long.
        settings.queueing.idle_timeout = 0.01


@cache
def _shared_core() -> kubernetes.client.CoreV1Api:
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
    """Keep one ConfigMap per Widget and report in the status for which generation that was done."""
    if namespace is None:
        raise kopf.PermanentError("a Widget is in a namespace")
    child = kubernetes.client.V1ConfigMap(
        metadata=kubernetes.client.V1ObjectMeta(name=name),
        data={"size": str(spec["size"]), "payload": spec.get("payload", "")},
    )
    kopf.adopt(child)
    core = _shared_core() if _IS_TUNED else kubernetes.client.CoreV1Api()
    try:
        core.create_namespaced_config_map(namespace, child)
    except kubernetes.client.ApiException as error:
        if error.status != 409:
            raise
        core.replace_namespaced_config_map(name, namespace, child)
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
