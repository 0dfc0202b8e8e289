"""Revisions that are still to come: reads and watches wait for them, on every control plane, and not for ever."""

from __future__ import annotations

import asyncio

import pytest
from tests.conformance.asking import Fetch, decoded

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.errors import ServerTimeout
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text

NEVER = 9_999_999_999
LABELS = {"awaited": "yes"}


async def create(client: Client, *names: str) -> list[ConfigMap]:
    return [await client.create(ConfigMap(metadata=ObjectMeta(name=name, labels=LABELS))) for name in names]


async def newest(client: Client) -> int:
    page = await anext(client.list(ConfigMap).pages())
    return int(page.metadata.resource_version)


async def test_reads_wait_until_a_revision_is_reached(fetch: Fetch, client: Client) -> None:
    await create(client, "there")
    awaited = await newest(client) + 3
    path = f"/api/v1/namespaces/{client.namespace}/configmaps"
    reads = [
        asyncio.ensure_future(fetch(f"{path}?resourceVersion={awaited}")),
        asyncio.ensure_future(fetch(f"{path}?resourceVersion={awaited}&resourceVersionMatch=NotOlderThan&limit=500")),
        asyncio.ensure_future(fetch(f"{path}?resourceVersion={awaited}&resourceVersionMatch=Exact")),
        asyncio.ensure_future(fetch(f"{path}/there?resourceVersion={awaited}")),
    ]
    # All four are on their way, or the revision would be reached before they ask.
    assert (await fetch(path)).status == 200
    await create(client, "a", "b", "c")
    answers = await asyncio.gather(*reads)
    assert [answer.status for answer in answers] == [200, 200, 200, 200]
    for answer in answers[:2]:
        assert int(text(decoded(answer), "metadata", "resourceVersion")) >= awaited
    assert text(decoded(answers[2]), "metadata", "resourceVersion") == str(awaited)
    assert text(decoded(answers[3]), "metadata", "name") == "there"


async def test_a_revision_that_never_comes_is_not_awaited_for_ever(fetch: Fetch, client: Client) -> None:
    path = f"/api/v1/namespaces/{client.namespace}/configmaps"
    answers = await asyncio.gather(
        fetch(f"{path}?resourceVersion={NEVER}"),
        fetch(f"{path}?resourceVersion={NEVER}&resourceVersionMatch=Exact"),
        fetch(f"{path}?resourceVersion={NEVER}&limit=1"),
        fetch(f"{path}/nothing?resourceVersion={NEVER}"),
    )
    for answer in answers:
        status = decoded(answer)
        assert (answer.status, status["reason"], answer.headers.get("Retry-After")) == (504, "Timeout", "1")
        assert str(status["message"]).startswith(f"Timeout: Too large resource version: {NEVER}, current: ")
        assert mapping(status, "details") == {
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        }


async def test_reads_of_events_do_not_wait(fetch: Fetch, client: Client) -> None:
    """The real server has no cache of them that could be behind."""
    for path in (f"/api/v1/namespaces/{client.namespace}/events", "/apis/events.k8s.io/v1/events"):
        answer = await fetch(f"{path}?resourceVersion={NEVER}")
        assert (answer.status, answer.headers.get("Retry-After")) == (504, None)
        assert mapping(decoded(answer), "details").keys() == {"causes"}


async def test_a_watch_from_a_coming_revision_is_silent_until_then(client: Client) -> None:
    await create(client, "before")
    start = await newest(client) + 2
    async with client.watch(ConfigMap, labels=LABELS, resource_version=str(start), bookmarks=False) as events:
        created = await create(client, "a", "b", "c", "d")
        expected = [found.metadata.name for found in created if int(found.metadata.resource_version) > start]
        assert expected
        stream = aiter(events)
        seen = [(await anext(stream)).header.name for _ in expected]
    assert seen == expected


async def test_a_streamed_list_waits_for_its_revision(client: Client) -> None:
    await create(client, "before")
    awaited = await newest(client) + 2
    watch = client.watch(ConfigMap, labels=LABELS, initial_events=True, resource_version=str(awaited))

    async def names_and_end() -> tuple[list[str], int]:
        names: list[str] = []
        async with watch as events:
            async for event in events:
                if event.ends_initial_list:
                    return names, int(event.header.resource_version)
                names.append(event.header.name)
        raise AssertionError("the initial list did not end")

    listing = asyncio.ensure_future(names_and_end())
    await newest(client)
    created = await create(client, "a", "b", "c")
    names, end = await listing
    assert end >= awaited
    reached = [found.metadata.name for found in created if int(found.metadata.resource_version) <= awaited]
    assert names[: 1 + len(reached)] == sorted(["before", *reached])


async def test_a_streamed_list_of_a_future_revision_ends_with_the_reason(client: Client) -> None:
    watch = client.watch(ConfigMap, labels=LABELS, initial_events=True, resource_version=str(NEVER))
    with pytest.raises(ServerTimeout, match=f"Too large resource version: {NEVER}, current: "):
        async with watch as events:
            await anext(aiter(events))


@pytest.mark.parametrize("revision", ["abc", "-1", "1.5", "99999999999999999999"])
async def test_an_invalid_revision_is_reported(fetch: Fetch, client: Client, revision: str) -> None:
    path = f"/api/v1/namespaces/{client.namespace}/configmaps"
    listed = await fetch(f"{path}?resourceVersion={revision}")
    others = [
        await fetch(f"{path}?watch=1&resourceVersion={revision}"),
        await fetch(f"{path}/x?resourceVersion={revision}"),
    ]
    why = "value out of range" if len(revision) > 19 else "invalid syntax"
    complaint = f'resourceVersion: Invalid value: "{revision}": strconv.ParseUint: parsing "{revision}": {why}'
    assert (listed.status, decoded(listed)["message"]) == (400, f"invalid resource version: {complaint}")
    for answer in others:
        assert (answer.status, decoded(answer)["message"]) == (500, complaint)


@pytest.mark.parametrize(
    ("query", "complaints"),
    [
        ("resourceVersionMatch=Exact", ["resourceVersionMatch is forbidden unless resourceVersion is provided"]),
        (
            "resourceVersionMatch=Other&resourceVersion=1",
            ['Unsupported value: "Other": supported values: "Exact", "NotOlderThan", ""'],
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            ['resourceVersionMatch "exact" is forbidden for resourceVersion "0"'],
        ),
        ("sendInitialEvents=true", ["sendInitialEvents is forbidden for list"]),
        (
            "watch=1&sendInitialEvents=true",
            ["sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"],
        ),
        (
            "watch=1&sendInitialEvents=true&resourceVersionMatch=Exact",
            [
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                'Unsupported value: "Exact": supported values: "NotOlderThan"',
            ],
        ),
        (
            "watch=1&resourceVersionMatch=NotOlderThan&resourceVersion=1",
            ["resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"],
        ),
        ("watch=1&continue=x", ["resourceVersionMatch is forbidden when continue is provided"]),
    ],
)
async def test_options_that_do_not_go_together_are_refused(fetch: Fetch, query: str, complaints: list[str]) -> None:
    answer = await fetch(f"/api/v1/nodes?{query}")
    status = decoded(answer)
    assert answer.status == 422
    assert str(status["message"]).startswith('ListOptions.meta.k8s.io "" is invalid: ')
    refusal = [text(cause, "message") for cause in items(status, "details", "causes")]
    assert [message.removeprefix("Forbidden: ") for message in refusal] == complaints
