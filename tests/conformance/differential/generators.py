"""Sequences of requests about the objects of a kind.

Conflict, dry run and ownership come from what the requests of a sequence do to each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.conformance.differential.sides import CURRENT, LABEL, STALE, Step, uncollected

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import mapping

T = TypeVar("T")
Objects = st.SearchStrategy[JSONObject]
Values = st.SearchStrategy[JSONValue]

JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
STEPS = 10
SEED = os.environ.get("DIFFERENTIAL_SEED")
"""Other examples than the ones of every run: `DIFFERENTIAL_SEED=7 pytest tests/conformance/differential`."""


def optional(**fields: Values) -> Objects:
    """Objects that have any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def required(**fields: Values) -> Objects:
    """Objects that have all of the fields."""
    return st.fixed_dictionaries(fields)


def values(*choices: JSONValue) -> Values:
    """One of the values."""
    return st.sampled_from(choices)


def some(items: Values | Objects, most: int = 2) -> Values:
    """A short list."""
    return st.lists(items, max_size=most).map(lambda chosen: [*chosen])


def entries(names: Sequence[str], chosen: Values, most: int = 3) -> Objects:
    """A map with some of the names."""
    return st.dictionaries(st.sampled_from(names), chosen, max_size=most).map(lambda found: {**found})


labels = entries(["watched", "tier"], values("yes", "no"), 2)
finalizers = some(values(*["example.com/hold", "example.com/wait"] * 4, "short"))
metadata = optional(
    labels=labels | labels | labels | values({"tier": "not a value"}),
    annotations=labels | labels | labels | values({"not a name": "x"}),
    finalizers=finalizers,
)


@dataclass(frozen=True)
class Family:
    """A kind, what may be in its objects, and how patches may change them."""

    path: str
    api_version: str
    kind: str
    contents: Objects
    changes: Objects
    operations: Objects
    statuses: Objects | None = None
    propagation: Sequence[str] = ("", "Background", "Orphan", "Foreground")
    replaces_status: bool = True
    unfinished: Callable[[JSONObject], bool] = uncollected
    sequences: int = 40
    """How many are tried: fewer of a kind whose controllers are slow."""
    suffix: str = ""
    """How names of the kind end."""


def operations(paths: Sequence[str], chosen: Values) -> Objects:
    """Operations of a JSON patch."""
    path = values(*paths, "/metadata/labels", "/metadata/labels/tier", "/metadata/annotations/note")
    return (
        required(op=values("add", "replace", "test"), path=path, value=chosen)
        | required(op=values("remove"), path=path)
        | required(op=values("copy", "move"), path=path, **{"from": path})
    )


revisions = st.sampled_from(["", "", CURRENT, CURRENT, STALE])
dry_runs = st.sampled_from([(), (), (), (), (("dryRun", "All"),)])
managers = st.sampled_from(["one", "two", "three"])


@st.composite
def steps(draw: st.DrawFn, family: Family) -> Step:
    """One request about the object "a" or, seldom, "b"."""
    name = draw(st.sampled_from(["a", "a", "a", "b"])) + family.suffix
    query: tuple[tuple[str, str], ...] = draw(dry_runs)
    verb = draw(
        st.sampled_from(
            ["create", "create", "update", "update", "json", "merge", "strategic", "apply", "apply", "apply"]
        )
        | st.sampled_from(["status", "delete", "get", "release"])
    )
    if verb in ("create", "update", "apply"):
        body = whole(family, name, draw(metadata), draw(family.contents))
        if verb == "create":
            return Step("POST", name, body, query=query)
        if verb == "update":
            return Step("PUT", name, _at_revision(body, draw(revisions)), query=query)
        query += (("fieldManager", draw(managers)), ("force", draw(st.sampled_from(["true", "false"]))))
        return Step("PATCH", name, body, APPLY, query)
    if verb == "json":
        return Step("PATCH", name, draw(some(family.operations, 3)), JSON_PATCH, query)
    if verb in ("merge", "strategic"):
        body = {"metadata": draw(metadata), **draw(family.changes)}
        content_type = MERGE_PATCH if verb == "merge" else STRATEGIC_PATCH
        return Step("PATCH", name, _at_revision(body, draw(revisions)), content_type, query)
    if verb == "status" and family.statuses is not None:
        body = {"metadata": draw(metadata), "status": draw(family.statuses)}
        if draw(st.booleans()) or not family.replaces_status:
            return Step("PATCH", name, body, MERGE_PATCH, query, "status")
        content = {**draw(family.contents), "status": draw(family.statuses)}
        body = _at_revision(whole(family, name, draw(metadata), content), draw(revisions))
        return Step("PUT", name, body, query=query, subresource="status")
    if verb == "delete":
        options: JSONObject = {}
        if policy := draw(st.sampled_from(family.propagation)):
            options["propagationPolicy"] = policy
        if revision := draw(revisions):
            options["preconditions"] = {"resourceVersion": revision}
        return Step("DELETE", name, {**options, **({"dryRun": ["All"]} if query else {})})
    if verb == "release":
        return Step("PATCH", name, {"metadata": {"finalizers": None}}, MERGE_PATCH, query)
    return Step("GET", name)


@st.composite
def sequences(draw: st.DrawFn, family: Family) -> list[Step]:
    """Begins with an object that most steps are then about."""
    name = f"a{family.suffix}"
    body = whole(family, name, draw(metadata), draw(family.contents))
    first = draw(
        st.sampled_from([Step("POST", name, body), Step("PATCH", name, body, APPLY, (("fieldManager", "one"),))])
    )
    return [first, *draw(st.lists(steps(family), min_size=STEPS, max_size=STEPS))]


def whole(family: Family, name: str, metadata: JSONObject, content: JSONObject) -> JSONObject:
    """An object of the family, as a client writes it."""
    return {
        "apiVersion": family.api_version,
        "kind": family.kind,
        "metadata": {"name": f"{LABEL}-{name}", **metadata},
        **content,
    }


def _at_revision(body: JSONObject, revision: str) -> JSONObject:
    return {**body, "metadata": {**mapping(body, "metadata"), "resourceVersion": revision}} if revision else body


def examples(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """The same examples in every run with the same `SEED`."""
    found: list[T] = []

    @settings(
        max_examples=count,
        derandomize=SEED is None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    (collect if SEED is None else seed(int(SEED))(collect))()
    return found
