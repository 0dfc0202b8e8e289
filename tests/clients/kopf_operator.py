"""A kopf operator as its users write them: each Bowl gets a ConfigMap, kept up to date and removed with it.

kopf's own login also configures the official client, which the handlers use for the ConfigMaps.
"""

from __future__ import annotations

import kopf
from kubernetes.client import CoreV1Api, V1ConfigMap, V1ObjectMeta


@kopf.on.create("bowls")
def created(body: kopf.Body, spec: kopf.Spec, meta: kopf.Meta, patch: kopf.Patch, **_: object) -> dict[str, str]:
    child = V1ConfigMap(metadata=V1ObjectMeta(name=meta["name"]), data={"fruit": spec["fruit"]})
    kopf.adopt(child)
    CoreV1Api().create_namespaced_config_map(meta["namespace"], child)
    kopf.info(body, reason="Filled", message=f"with a {spec['fruit']}")
    patch.status["phase"] = "Filled"
    return {"child": meta["name"]}


@kopf.on.update("bowls", field="spec.fruit")
def refilled(old: object, new: object, meta: kopf.Meta, patch: kopf.Patch, **_: object) -> None:
    change = {"data": {"fruit": new, "before": old}}
    CoreV1Api().patch_namespaced_config_map(meta["name"], meta["namespace"], change)
    patch.status["phase"] = "Refilled"


@kopf.on.delete("bowls")
def emptied(spec: kopf.Spec, meta: kopf.Meta, **_: object) -> None:
    # Not adopted: it stays behind and shows that the handler ran before the Bowl was gone.
    farewell = V1ConfigMap(metadata=V1ObjectMeta(name=f"{meta['name']}-emptied"), data={"fruit": spec["fruit"]})
    CoreV1Api().create_namespaced_config_map(meta["namespace"], farewell)
