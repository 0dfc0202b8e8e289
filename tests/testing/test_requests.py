from __future__ import annotations

from kubewright import Client, ObjectMeta
from kubewright.api.core.v1 import ConfigMap
from kubewright.testing import count_requests


async def test_reads_and_writes_are_counted_while_the_block_runs(admin: Client, namespace: str) -> None:
    config_map = ConfigMap(metadata=ObjectMeta(name="a", namespace=namespace))
    with count_requests(admin) as requests:
        created = await admin.in_namespace(namespace).create(config_map)
        await admin.find(ConfigMap, "b", namespace=namespace)
        await admin.list(ConfigMap, namespace=namespace)
    await admin.delete(created)

    assert (requests.reads, requests.writes) == (2, 1)
    assert requests.by_path == {
        "POST /api/v1/namespaces/{namespace}/configmaps": 1,
        "GET /api/v1/namespaces/{namespace}/configmaps/{name}": 1,
        "GET /api/v1/namespaces/{namespace}/configmaps": 1,
    }
