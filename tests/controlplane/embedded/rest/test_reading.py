from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, text

Send = Callable[..., Awaitable[tuple[int, JSONObject]]]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize(
    ("query", "complaint"),
    [
        ("limit=x&labelSelector=%3Dx&resourceVersionMatch=Wrong", 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("labelSelector=a+in+b&resourceVersionMatch=Exact", "found 'b' expected: '('"),
        (
            "fieldSelector=type%3Dx&resourceVersion=x",
            '"type" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
async def test_of_several_mistakes_in_a_list_the_one_that_is_read_first_is_reported(
    send: Send, query: str, complaint: str
) -> None:
    status, refused = await send("GET", f"{CONFIG_MAPS}?{query}")

    assert status == 400
    assert text(refused, "message").endswith(complaint)


async def test_a_full_page_of_selected_objects_has_another_after_it_unless_it_is_the_end(send: Send) -> None:
    for name, tier in (("a", "x"), ("b", "y"), ("c", "x")):
        await send("POST", CONFIG_MAPS, {"metadata": {"name": name, "labels": {"tier": tier}}})

    _, first = await send("GET", f"{CONFIG_MAPS}?labelSelector=tier%3Dy&limit=1")
    _, second = await send("GET", f"{CONFIG_MAPS}?labelSelector=tier%3Dy&limit=1&continue={_token(first)}")
    _, whole = await send("GET", f"{CONFIG_MAPS}?labelSelector=tier%3Dx&limit=2")

    assert [_names(page) for page in (first, second, whole)] == [["b"], [], ["a", "c"]]
    assert _token(first)
    assert not _token(second)
    assert not _token(whole)


def _names(page: JSONObject) -> list[str]:
    return [text(item, "metadata", "name") for item in items(page, "items")]


def _token(page: JSONObject) -> str:
    return text(page, "metadata", "continue")
