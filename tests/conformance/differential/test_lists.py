"""The same lists on both control planes: selectors, pages, and what deleting a collection leaves."""

from __future__ import annotations

import json
from urllib.parse import quote, urlencode

import msgspec
from hypothesis import strategies as st
from tests.conformance.differential.generators import examples, whole
from tests.conformance.differential.kinds import CONFIG_MAPS, SECRETS
from tests.conformance.differential.sides import SECONDS, Both, Side, Step

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text

Query = tuple[tuple[str, str], ...]

label_terms = st.sampled_from(
    [
        "tier=yes",
        "tier==no",
        "tier!=no",
        "tier",
        "!tier",
        "watched in (yes,no)",
        "watched notin (yes)",
        "watched in ()",
        "size>1",
        "size<2",
        "size>x",
        "tier=not a value",
        "=x",
        "tier in yes",
        "absent",
        "-wrong",
        "",
    ]
)
field_terms = st.sampled_from(
    [
        "metadata.name=o1",
        "metadata.name!=o1",
        "metadata.name==o2",
        "metadata.namespace=elsewhere",
        "type=Opaque",
        "type!=Opaque",
        "data.a=1",
        "metadata.name",
        "metadata.name in (o1)",
        "=",
    ]
)
limits = st.sampled_from(["", "", "1", "2", "3", "500", "0", "-1", "x"])
matches = st.sampled_from(["", "", "", "Exact", "NotOlderThan", "Wrong"])
revisions = st.sampled_from(["", "", "0", "1", "x"])


@st.composite
def queries(draw: st.DrawFn) -> Query:
    """Valid and invalid options of a list."""
    chosen = {
        "labelSelector": ",".join(draw(st.lists(label_terms, max_size=2))),
        "fieldSelector": ",".join(draw(st.lists(field_terms, max_size=1))),
        "limit": draw(limits),
        "resourceVersion": draw(revisions),
        "resourceVersionMatch": draw(matches),
    }
    return tuple((name, value) for name, value in chosen.items() if value)


async def pages(side: Side, query: Query) -> list[str]:
    """Every page of a list, each as the status, the names on it and the rest of the answer."""
    found: list[str] = []
    token = ""
    while True:
        written = urlencode([*query, *([("continue", token)] if token else [])], quote_via=quote)
        answer = await side.transport.request("GET", f"{side.collection}?{written}", timeout=SECONDS)
        document = msgspec.json.decode(answer.body, type=JSONObject)
        names = [text(item, "metadata", "name") for item in items(document, "items")]
        metadata = dict(mapping(document, "metadata"))
        token = str(metadata.pop("continue", "") or "")
        metadata.pop("resourceVersion", None)
        kept: JSONObject = {**document, "items": [*names], "metadata": metadata}
        found.append(f"{answer.status} {json.dumps(kept, sort_keys=True)}")
        if not token:
            return found
        # A token says at which revision; a request must not say it again.
        query = tuple(part for part in query if not part[0].startswith("resourceVersion"))


async def test_lists_are_selected_and_paged_the_same(both: Both) -> None:
    for family in (CONFIG_MAPS, SECRETS):
        for number in range(7):
            labels: JSONObject = {"tier": ("yes", "no")[number % 2], "size": str(number)}
            if number % 3:
                labels["watched"] = ("yes", "no")[number % 3 - 1]
            content: JSONObject = {"type": "example.com/own"} if family is SECRETS and number % 2 else {}
            step = Step("POST", f"{number}", whole(family, f"{number}", {"labels": labels}, content))
            assert not await both.difference(family.path, [step], "o")
        found = []
        for query in examples(queries(), 150):
            ours, theirs = both.sides(family.path, "")
            refusal, expected = await pages(ours, query), await pages(theirs, query)
            if refusal != expected:
                found.append(f"{query}\nreal: {expected}\nembedded: {refusal}\n")
        assert not found, f"{len(found)} lists of {family.kind} differ:\n" + "\n".join(found)
