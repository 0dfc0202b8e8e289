from __future__ import annotations

from collections.abc import Awaitable, Callable

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping, text

Send = Callable[..., Awaitable[tuple[int, JSONObject]]]


async def test_the_writer_of_finalize_manages_the_finalizers(send: Send) -> None:
    _, created = await send(
        "POST", "/api/v1/namespaces", {"metadata": {"name": "a"}, "spec": {"finalizers": ["example.com/one"]}}
    )
    changed = copied_object(created)
    inside(changed, "spec")["finalizers"] = ["kubernetes"]

    _, finalized = await send("PUT", "/api/v1/namespaces/a/finalize", changed)

    managers = {
        text(entry, "subresource"): mapping(entry, "fieldsV1", "f:spec")
        for entry in items(finalized, "metadata", "managedFields")
    }
    assert managers == {"": {}, "finalize": {"f:finalizers": {}}}
