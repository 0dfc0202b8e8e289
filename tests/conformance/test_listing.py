"""Selectors and pages, on every control plane; what is malformed is refused with the same message by all."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Awaitable, Callable
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conformance.asking import Ask

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.errors import BadRequest
from kubewright.controlplane.embedded.apimachinery.document import at
from kubewright.controlplane.embedded.apimachinery.gotext import quoted
from kubewright.controlplane.embedded.apimachinery.selectors import parse_field_selector, parse_label_selector
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.storage.continuation import decode_continue

differential = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

LABELLED = {
    "one": {"app": "web", "size": "5"},
    "two": {"app": "web", "tier": "front"},
    "three": {"app": "db", "size": "50"},
    "four": {"app": ""},
    "five": {"in": "notin"},
}


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ("app=web", {"one", "two"}),
        ("app==web,!size", {"two"}),
        ("app!=web", {"three", "four", "five"}),
        ("app=", {"four"}),
        ("app in (db,)", {"three", "four"}),
        ("app notin (web,db)", {"four", "five"}),
        ("app in ()", {"four"}),
        ("app", {"one", "two", "three", "four"}),
        ("!app", {"five"}),
        ("size>5", {"three"}),
        ("size<6", {"one"}),
        ("in in (in, notin)", {"five"}),
    ],
)
async def test_labels_select(client: Client, labels: str, names: set[str]) -> None:
    for name, has in LABELLED.items():
        await client.create(ConfigMap(metadata=ObjectMeta(name=name, labels=has)))

    found = {item.metadata.name for item in await client.list(ConfigMap, labels=labels)}

    # kube-controller-manager puts a ConfigMap of its own into every namespace.
    assert found - {"kube-root-ca.crt"} == names


SELECTORS = st.lists(
    st.sampled_from(
        [
            "a",
            "b-",
            "in",
            "notin",
            "x/y",
            "A/b",
            "=",
            "==",
            "!=",
            "!",
            "(",
            ")",
            ",",
            "<",
            ">",
            " ",
            "5",
            "$",
            "é",
            "\\",
        ]
    ),
    max_size=8,
).map("".join)


async def complaint(answer: Awaitable[object]) -> str:
    """Why the server refuses; empty when it does not."""
    try:
        await answer
    except BadRequest as error:
        return error.status.message
    return ""


def our_complaint(parse: Callable[[str], object], text: str) -> str:
    try:
        parse(text)
    except StatusError as error:
        return error.message
    return ""


@differential
@given(selector=SELECTORS)
async def test_label_selectors_are_understood_alike(client: Client, selector: str) -> None:
    found = await complaint(client.list(ConfigMap, labels=selector))

    assert found == our_complaint(parse_label_selector, selector)


@differential
@given(values=st.lists(st.sampled_from(["a", ",", "=", "!", "\\", "é", " ", "metadata.name"]), max_size=8))
async def test_field_selectors_are_understood_alike(client: Client, values: list[str]) -> None:
    selector = "metadata.name=" + "".join(values)

    found = await complaint(client.list(ConfigMap, fields=selector))

    if expected := our_complaint(parse_field_selector, selector):
        assert found == expected
    else:
        fields = [requirement.field for requirement in parse_field_selector(selector).requirements]
        unknown = [f"{quoted(field)} is not a known field selector" for field in fields if field != "metadata.name"]
        assert found.partition(":")[0] == (unknown[0] if unknown else "")


@differential
@given(
    token=st.text(alphabet="abcXYZ019-_=+\n", min_size=1, max_size=9)
    | st.lists(
        st.sampled_from(
            ["{", "}", '"v"', '"rv"', '"start"', ":", ",", '"meta.k8s.io/v1"', "0", "-1", "1.5", '"a"', "nul"]
        ),
        min_size=1,
        max_size=9,
    ).map(lambda parts: urlsafe_b64encode("".join(parts).encode()).rstrip(b"=").decode())
)
async def test_continue_tokens_are_understood_alike(client: Client, token: str) -> None:
    path = f"/api/v1/namespaces/{client.namespace}/configmaps?limit=2&continue={quote(token)}"

    found = await complaint(client._operations.session.request("GET", path, request="list"))

    assert found == our_complaint(lambda text: decode_continue(text, "/core/configmaps/"), token)


async def test_all_pages_show_the_revision_of_the_first(client: Client) -> None:
    for name in "abcde":
        await client.create(ConfigMap(metadata=ObjectMeta(name=name)))
    pages = client.list(ConfigMap, page_size=2).pages()
    first = await anext(pages)

    await client.delete(ConfigMap, "c")
    await client.create(ConfigMap(metadata=ObjectMeta(name="bb")))
    rest = [page async for page in pages]

    names = [item.metadata.name for page in (first, *rest) for item in page.items]
    assert [name for name in names if name != "kube-root-ca.crt"] == ["a", "b", "c", "d", "e"]
    assert {page.metadata.resource_version for page in rest} == {first.metadata.resource_version}
    assert first.metadata.remaining_item_count == len(names) - 2
    assert rest[-1].metadata.continue_ == ""


async def test_a_page_of_the_only_object_that_can_be_meant_is_the_last(ask: Ask) -> None:
    configmaps = "/api/v1/namespaces/NAMESPACE/configmaps"
    for name in ("a", "b"):
        await ask("POST", configmaps, {"metadata": {"name": name}})
    named = (await ask("GET", f"{configmaps}?limit=1&fieldSelector=metadata.name%3Da")).body
    anyone = (await ask("GET", f"{configmaps}?limit=1&fieldSelector=metadata.name!%3Dx")).body

    assert at(named, "metadata", "continue") is None
    assert at(anyone, "metadata", "continue")


async def test_parts_of_a_query_that_cannot_be_decoded_are_ignored(ask: Ask) -> None:
    configmaps = "/api/v1/namespaces/NAMESPACE/configmaps"

    assert (await ask("GET", f"{configmaps}?labelSelector=%zz")).code == 200
    assert (await ask("GET", f"{configmaps}?limit=99999999999999999999")).refusal == (
        400,
        "BadRequest",
        'strconv.ParseInt: parsing "99999999999999999999": value out of range',
    )
