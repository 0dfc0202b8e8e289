"""The same requests to both control planes: the same watch events."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from urllib.parse import urlencode

import msgspec
from tests.conformance.differential.generators import MERGE_PATCH, examples, sequences, whole
from tests.conformance.differential.kinds import CONFIG_MAPS
from tests.conformance.differential.sides import SECONDS, Both, Side, Step

from kubewright.api.markers import JSONObject
from kubewright.client.http.transport import StreamedResponse
from kubewright.controlplane.embedded.apimachinery.document import mapping, text


async def events(side: Side, stream: StreamedResponse, last: str) -> list[str]:
    """A watch until the object `last` is added. Of bookmarks, only the one that ends the initial events."""
    found: list[str] = []
    async with asyncio.timeout(SECONDS):
        async for line in stream.lines():
            event = msgspec.json.decode(line, type=JSONObject)
            if text(event, "type") == "BOOKMARK":
                found += ["BOOKMARK"] if mapping(event, "object", "metadata", "annotations") else []
                continue
            found.append(side.comparable(event))
            if text(event, "object", "metadata", "name") == last:
                break
    return found


async def test_the_same_requests_make_the_same_events(both: Both) -> None:
    """Objects come and go as their labels begin and cease to match."""
    family = CONFIG_MAPS
    chosen = examples(sequences(family), 30)
    for number, sequence in enumerate(chosen[:10]):
        assert not await both.difference(family.path, sequence, f"before{number}")
    query = {
        "watch": "true",
        "labelSelector": "watched=yes",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": f"{SECONDS * 3}",
    }
    sides = both.sides(family.path, "")
    async with AsyncExitStack() as streams:
        opened = [
            await streams.enter_async_context(
                await side.transport.stream("GET", f"{side.collection}?{urlencode(query)}", timeout=SECONDS)
            )
            for side in sides
        ]
        for number, sequence in enumerate(chosen[10:]):
            assert not await both.difference(family.path, sequence, f"live{number}")
        certain: list[Step] = [
            Step("POST", "one", whole(family, "one", {"labels": {"watched": "yes"}}, {})),
            Step("PATCH", "one", {"data": {"a": "1"}}, MERGE_PATCH),
            Step("PATCH", "one", {"metadata": {"labels": None}}, MERGE_PATCH),
        ]
        assert not await both.difference(family.path, certain, "no")
        last = Step("POST", "last", whole(family, "last", {"labels": {"watched": "yes"}}, {}))
        assert not await both.difference(family.path, [last], "the")
        ours, theirs = [await events(side, stream, "the-last") for side, stream in zip(sides, opened, strict=True)]
    assert ours == theirs
    kinds = {event.partition('"type": ')[2] or event for event in ours}
    assert len(kinds) >= 4, "every type of event is among them"
