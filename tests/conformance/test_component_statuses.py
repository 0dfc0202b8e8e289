"""What `kubectl get componentstatuses` reads. Whether the others run is up to how a control plane was started."""

from __future__ import annotations

from tests.conformance.asking import Fetch, decoded

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import at, items, text

PATH = "/api/v1/componentstatuses"
STORE: JSONObject = {
    "metadata": {"name": "etcd-0"},
    "conditions": [{"type": "Healthy", "status": "True", "message": "ok"}],
}


async def test_components_are_listed_and_read(fetch: Fetch) -> None:
    listed = decoded(await fetch(PATH))
    # In no particular order: the server asks all of them at once.
    found = {text(item, "metadata", "name"): item for item in items(listed, "items")}
    assert found.keys() == {"scheduler", "controller-manager", "etcd-0"}
    assert (found["etcd-0"], listed["metadata"]) == (STORE, {})
    assert decoded(await fetch(f"{PATH}/etcd-0")) == {"kind": "ComponentStatus", "apiVersion": "v1", **STORE}


async def test_their_table_has_a_row_for_each(fetch: Fetch) -> None:
    accept = ("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1")
    table, single = (
        decoded(await fetch(PATH, headers=[accept])),
        decoded(await fetch(f"{PATH}/etcd-0", headers=[accept])),
    )
    cells = [at(row, "cells") for row in items(table, "rows")]
    assert len(cells) == 3
    assert ["etcd-0", "Healthy", "ok", ""] in cells
    assert (table["metadata"], single["metadata"]) == ({}, {})
