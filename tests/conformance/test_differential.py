"""The same requests to both control planes: the same answers, objects and watch events.

Times are left out of the comparison; uids, revisions and cluster IPs are numbered in the order they appear, so that a
write that stores nothing on one server and something on the other is a difference. Conflict, dry run and ownership
come from what the generated sequences do to each other.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import TypeVar
from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client.http.transport import HTTPTransport, StreamedResponse
from kubewright.client.wait import established, exists
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.document import JSONObject, items, mapping, text
from kubewright.testing.namespaces import unique_name

T = TypeVar("T")
Objects = st.SearchStrategy[JSONObject]
Values = st.SearchStrategy[JSONValue]

JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
# Stand in a body for what only the server can tell: the revision an object has, and the first one it had.
CURRENT, STALE = "<current>", "<stale>"
# Stands in a body for what makes the names of a sequence its own.
LABEL = "<label>"
COLLECTORS = {"orphan", "foregroundDeletion"}
"""Finalizers that the garbage collector takes away, in its own time."""

GROUP = "differential.example.com"
SECONDS = 20
SEQUENCES, STEPS, AT_ONCE = 60, 10, 10


@dataclass(frozen=True)
class Step:
    """One request about the object `name` of a sequence. Its `body` may hold `CURRENT` and `STALE`."""

    method: str
    name: str
    body: JSONValue = None
    content_type: str = "application/json"
    query: tuple[tuple[str, str], ...] = ()
    subresource: str = ""


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
    replaces_status: bool = True
    propagation: Sequence[str] = ("", "Background", "Orphan", "Foreground")


@dataclass
class Side:
    """One of the two servers, and what a sequence has seen of it."""

    transport: HTTPTransport
    collection: str
    label: str
    numbers: dict[str, str] = field(default_factory=dict)
    revisions: dict[str, list[str]] = field(default_factory=dict)

    async def send(self, step: Step) -> str:
        """The answer in a form that can be compared, once nobody but the client will change the object."""
        name = f"{self.label}-{step.name}"
        path = (
            self.collection if step.method == "POST" else "/".join(filter(None, (self._path(name), step.subresource)))
        )
        seen = self.revisions.get(name, ["1"])
        body = None
        if step.body is not None:
            body = json.dumps(step.body).replace(CURRENT, seen[-1]).replace(STALE, seen[0])
            body = body.replace(LABEL, self.label)
        target = f"{path}?{urlencode(step.query)}"
        headers = [("Content-Type", step.content_type), ("Accept", "application/json"), ("User-Agent", "tester/1")]
        answer = await self.transport.request(
            step.method, target, headers, body.encode() if body else None, timeout=SECONDS
        )
        document = msgspec.json.decode(answer.body, type=JSONObject)
        self._remember(name, document, step)
        told = f"{answer.status} {self.comparable(document)}"
        if step.method == "DELETE":
            await self._settled(name)
        return told

    def comparable(self, document: JSONObject) -> str:
        """The document as text, without what is never the same twice."""
        written = json.dumps(_without_times(document), sort_keys=True, indent=1)
        written = re.sub(
            r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", lambda uid: self._number("uid", uid[0]), written
        )
        written = re.sub(r"\b10\.\d+\.\d+\.\d+\b", lambda address: self._number("ip", address[0]), written)
        return re.sub(
            r'(resourceVersion": "|ResourceVersion in the precondition \(|ResourceVersion in record \()(\d+)',
            lambda revision: revision[1] + self._number("revision", revision[2]),
            written,
        )

    def _path(self, name: str) -> str:
        return f"{self.collection}/{name}"

    def _number(self, what: str, value: str) -> str:
        return self.numbers.setdefault(f"{what} {value}", f"{what} {len(self.numbers)}")

    def _remember(self, name: str, document: JSONObject, step: Step) -> None:
        revision = text(document, "metadata", "resourceVersion")
        if revision and ("dryRun", "All") not in step.query:
            self.revisions.setdefault(name, []).append(revision)

    async def _settled(self, name: str) -> None:
        """Wait for the garbage collector, which is as quick as it is."""
        async with asyncio.timeout(SECONDS):
            while True:
                answer = await self.transport.request("GET", self._path(name), timeout=SECONDS)
                document = msgspec.json.decode(answer.body, type=JSONObject)
                if not COLLECTORS.intersection(map(str, items(document, "metadata", "finalizers"))):
                    self._remember(name, document, Step("GET", name))
                    return
                await asyncio.sleep(0.01)


def _without_times(document: JSONValue) -> JSONValue:
    """Managers in an order of their own: the server's is by time."""
    if isinstance(document, list):
        return [_without_times(item) for item in document]
    if isinstance(document, str):
        # Complaints about a patch quote what it made, in the order of Go's structs.
        return re.sub(r'"\{.*\}": ', "<document>: ", document, flags=re.DOTALL)
    if not isinstance(document, dict):
        return document
    kept: JSONObject = {
        name: "<time>"
        if name in ("time", "creationTimestamp", "deletionTimestamp") and value
        else _without_times(value)
        for name, value in document.items()
    }
    causes = items(kept, "details", "causes")
    if causes:
        # In no order, as the real server walks schemas and managers, and each once: it checks metadata twice.
        told = {json.dumps(cause, sort_keys=True) for cause in causes}
        kept["details"] = {**mapping(kept, "details"), "causes": [*sorted(told)]}
        if text(kept, "details", "group") == GROUP:
            kept["message"] = text(kept, "message").partition(" is invalid: ")[0]
    first, *others = text(kept, "message").split("\n")
    if others:
        # What is wrong with an applied object comes in no order.
        kept["message"] = "\n".join([first, *sorted(others)])
    managers = kept.get("managedFields")
    if isinstance(managers, list):
        kept["managedFields"] = sorted(managers, key=lambda entry: json.dumps(entry, sort_keys=True))
    return kept


# None of these is empty: the real server stores what is empty when it is applied to a custom resource, but shows none.
labels: Objects = st.dictionaries(
    st.sampled_from(["watched", "tier"]), st.sampled_from(["yes", "no"]), min_size=1, max_size=2
).map(lambda chosen: {**chosen})
finalizers: Values = st.lists(
    st.sampled_from(["example.com/hold", "example.com/wait"]), unique=True, min_size=1, max_size=2
).map(lambda names: [*names])
metadata: Objects = st.fixed_dictionaries(
    {}, optional={"labels": labels, "annotations": labels, "finalizers": finalizers}
)
revisions = st.sampled_from(["", "", CURRENT, CURRENT, STALE])
dry_runs = st.sampled_from([(), (), (), (), (("dryRun", "All"),)])
managers = st.sampled_from(["one", "two", "three"])


@st.composite
def steps(draw: st.DrawFn, family: Family) -> Step:
    name = draw(st.sampled_from(["a", "a", "a", "b"]))
    query: tuple[tuple[str, str], ...] = draw(dry_runs)
    verb = draw(
        st.sampled_from(
            ["create", "create", "update", "update", "json", "merge", "strategic", "apply", "apply", "apply"]
        )
        | st.sampled_from(["status", "delete", "get", "release"])
    )
    if verb in ("create", "update", "apply"):
        body = _object(family, name, draw(metadata), draw(family.contents))
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
        whole = _object(family, name, draw(metadata), {**draw(family.contents), "status": draw(family.statuses)})
        return Step("PUT", name, _at_revision(whole, draw(revisions)), query=query, subresource="status")
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


def _object(family: Family, name: str, metadata: JSONObject, content: JSONObject) -> JSONObject:
    return {
        "apiVersion": family.api_version,
        "kind": family.kind,
        "metadata": {"name": f"{LABEL}-{name}", **metadata},
        **content,
    }


def _at_revision(body: JSONObject, revision: str) -> JSONObject:
    return {**body, "metadata": {**mapping(body, "metadata"), "resourceVersion": revision}} if revision else body


def examples(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """The same examples in every run."""
    found: list[T] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    collect()
    return found


def optional(**fields: Values) -> Objects:
    """Objects that have any of the fields."""
    return st.fixed_dictionaries({}, optional=fields)


def required(**fields: Values) -> Objects:
    """Objects that have all of the fields."""
    return st.fixed_dictionaries(fields)


def values(*choices: JSONValue) -> Values:
    """One of the values."""
    return st.sampled_from(choices)


def some(items: Objects, most: int = 2) -> Values:
    """A short list of objects."""
    return st.lists(items, max_size=most).map(lambda chosen: [*chosen])


def operations(paths: Sequence[str], chosen: Values) -> Objects:
    """Operations of a JSON patch."""
    path = values(*paths, "/metadata/labels", "/metadata/labels/tier", "/metadata/annotations/note")
    return (
        required(op=values("add", "replace", "test"), path=path, value=chosen)
        | required(op=values("remove"), path=path)
        | required(op=values("copy", "move"), path=path, **{"from": path})
    )


entries = st.dictionaries(st.sampled_from("abc"), values("1", "2", ""), max_size=3).map(lambda data: {**data})
changed_entries = st.dictionaries(st.sampled_from("abc"), values("1", "2", None), max_size=3).map(lambda data: {**data})
CONFIG_MAPS = Family(
    path="/api/v1/namespaces/{namespace}/configmaps",
    api_version="v1",
    kind="ConfigMap",
    contents=optional(
        data=entries, binaryData=values({"z": "eA=="}, {"a": "eA=="}), immutable=values(False, False, True)
    ),
    # No removal from binaryData: for the real server, none and an empty one differ when the object is immutable.
    changes=optional(data=changed_entries | values(None), binaryData=values({"z": "eQ=="})),
    operations=operations(["/data", "/data/a", "/data/b", "/data/c"], values("1", "2", {"a": "2"}, {})),
)

ports = required(port=values(80, 81, 0), targetPort=values(8080, "http", 70000)) | required(
    name=values("one", "two"), port=values(80, 81), protocol=values("TCP", "UDP", "tcp")
)
conditions = required(
    type=values("Ready", "Done"),
    status=values("True", "False"),
    reason=values("Because"),
    message=values(""),
    lastTransitionTime=values("2026-01-01T00:00:00Z"),
)
selectors = st.dictionaries(st.sampled_from(["app", "tier"]), values("x", "y"), max_size=2).map(
    lambda chosen: {**chosen}
)
service_specs = optional(
    ports=some(ports),
    selector=selectors,
    # No type that does not exist: the embedded server then misses the cluster IPs, too.
    type=values("ClusterIP", "ExternalName"),
    sessionAffinity=values("None", "ClientIP"),
    publishNotReadyAddresses=values(True, False),
) | required(
    # With a selector: without one the real server makes it dual-stack, and cannot go back; the embedded one can.
    clusterIP=values("None"),
    selector=selectors.filter(bool),
    ports=some(ports),
)
SERVICES = Family(
    path="/api/v1/namespaces/{namespace}/services",
    api_version="v1",
    kind="Service",
    contents=required(spec=service_specs),
    changes=optional(spec=service_specs | optional(selector=values(None), ports=values(None), type=values(None))),
    operations=operations(
        ["/spec/ports", "/spec/ports/0", "/spec/ports/0/port", "/spec/selector"], values(82, {"port": 83})
    ),
    # Without load balancers: the embedded server does not judge their addresses.
    statuses=optional(conditions=some(conditions)),
    # The real server creates a service that is not there, half of it, by a PUT of its status; ours answers 404.
    replaces_status=False,
)

container = required(
    name=values("main", "side"),
    image=values("nginx:1", "nginx", "busybox:2"),
    imagePullPolicy=values("Always", "Never"),
) | required(
    name=values("main", "side", "Wrong"),
    image=values("nginx:1"),
    env=some(required(name=values("A", "B"), value=values("1", "2"))),
    ports=some(required(containerPort=values(80, 81))),
)
pod_specs = required(containers=some(container)) | required(
    containers=some(container),
    volumes=some(required(name=values("v", "w"), emptyDir=values({}))),
    tolerations=some(required(key=values("k", "l"), operator=values("Exists"))),
    nodeSelector=selectors,
    restartPolicy=values("Always", "Never"),
)
changed_pod_specs = optional(
    containers=some(
        container | required(name=values("main"), **{"$patch": values("delete")}) | required(name=values("main", "new"))
    ),
    volumes=some(required(name=values("v"), emptyDir=values(None, {})) | required(**{"$patch": values("replace")})),
    nodeSelector=values(None, {"app": None}, {"tier": "z"}),
    restartPolicy=values(None, "Always"),
)
templates = required(metadata=required(labels=values({"app": "x"})), spec=pod_specs)
POD_TEMPLATES = Family(
    path="/api/v1/namespaces/{namespace}/podtemplates",
    api_version="v1",
    kind="PodTemplate",
    contents=required(template=templates),
    changes=required(template=required(spec=changed_pod_specs)),
    operations=operations(
        ["/template/spec/containers/0", "/template/spec/containers/0/image", "/template/spec/nodeSelector"],
        values("nginx:3", {"name": "added", "image": "nginx"}, {}),
    ),
)

gear_specs = optional(
    # Always a number: the embedded server leaves the type of an applied scalar to the validation.
    size=values(1, 2, 5, 6, 0),
    color=values("red", "green", "blue"),
    teeth=some(required(name=values("a", "b"), length=values(1, 2)) | required(name=values("a", "c"))),
    tags=st.lists(values("x", "y"), max_size=2).map(lambda tags: [*tags]),
    steps=st.lists(values("x", "y"), max_size=2).map(lambda tags: [*tags]),
    options=entries,
    atomic=entries,
)
GEARS = Family(
    path="/apis/differential.example.com/v1/namespaces/{namespace}/gears",
    api_version="differential.example.com/v1",
    kind="Gear",
    contents=required(spec=gear_specs)
    | optional(spec=gear_specs)
    # Alone: what else the real server finds wrong with an applied object before an unknown field is chance.
    | required(spec=required(color=values("red")), unknown=values(1)),
    changes=optional(
        spec=optional(
            size=values(None, 3, 9, "1"),
            color=values(None, "green"),
            teeth=values(None, [{"name": "a", "length": 7}], [{"length": 3}]),
            options=changed_entries,
            atomic=changed_entries,
        )
    ),
    operations=operations(
        ["/spec", "/spec/size", "/spec/teeth/0", "/spec/teeth/-", "/spec/options/a", "/spec/tags/0"],
        values(1, 2, "x", {"name": "d"}, {}),
    ),
    statuses=optional(phase=values("Up", "Down", 1), size=values(1, 2)),
    # The real garbage collector learns of a new custom kind only half a minute later.
    propagation=("", "Background"),
)
GEAR_DEFINITION: JSONObject = {
    "metadata": {"name": "gears.differential.example.com"},
    "spec": {
        "group": "differential.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "default": {},
                                "properties": {
                                    "size": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
                                    "color": {"type": "string", "enum": ["red", "green"]},
                                    "teeth": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string"},
                                                "length": {"type": "integer", "default": 4},
                                            },
                                        },
                                    },
                                    "tags": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                    "steps": {"type": "array", "items": {"type": "string"}},
                                    "options": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "atomic": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "additionalProperties": {"type": "string"},
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"phase": {"type": "string"}, "size": {"type": "integer"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture
async def both(
    embedded_control_plane: ControlPlane, real_control_plane: ControlPlane, request: pytest.FixtureRequest
) -> AsyncIterator[tuple[tuple[HTTPTransport, HTTPTransport], str]]:
    """A connection to each server, and a namespace that both have."""
    namespace = unique_name(request.node.name)
    transports: list[HTTPTransport] = []
    for plane in (embedded_control_plane, real_control_plane):
        async with plane.client() as client:
            await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
            await client.wait_for(ServiceAccount, exists, name="default", namespace=namespace, timeout=10)
            definition = await client.apply(from_json(CustomResourceDefinition, GEAR_DEFINITION))
            await client.wait_for(definition, established)
        transports.append(HTTPTransport(plane.url, tls=plane.admin.ssl_context()))
    yield (transports[0], transports[1]), namespace
    for transport in transports:
        await transport.request("DELETE", f"/api/v1/namespaces/{namespace}", timeout=SECONDS)
        await transport.aclose()


Both = tuple[tuple[HTTPTransport, HTTPTransport], str]


async def differences(both: Both, family: Family, sequence: Sequence[Step], label: str) -> list[str]:
    """The first step that is answered differently, with what came before it. Later ones follow from it."""
    ours, theirs = (Side(transport, family.path.format(namespace=both[1]), label) for transport in both[0])
    for number, step in enumerate(sequence):
        told, expected = await asyncio.gather(ours.send(step), theirs.send(step))
        if told != expected:
            history = "\n".join(map(str, sequence[: number + 1]))
            delta = "\n".join(
                unified_diff(expected.splitlines(), told.splitlines(), "real", "embedded", n=2, lineterm="")
            )
            return [f"{history}\n{delta}\n"]
    return []


@st.composite
def sequences(draw: st.DrawFn, family: Family) -> list[Step]:
    """Begins with an object that most steps are then about."""
    name = "a"
    body = _object(family, name, draw(metadata), draw(family.contents))
    first = draw(
        st.sampled_from([Step("POST", name, body), Step("PATCH", name, body, APPLY, (("fieldManager", "one"),))])
    )
    return [first, *draw(st.lists(steps(family), min_size=STEPS, max_size=STEPS))]


@pytest.mark.parametrize("family", [CONFIG_MAPS, SERVICES, POD_TEMPLATES, GEARS], ids=lambda family: family.kind)
async def test_the_same_requests_are_answered_the_same(both: Both, family: Family) -> None:
    chosen = examples(sequences(family), SEQUENCES)
    found: list[str] = []
    for start in range(0, len(chosen), AT_ONCE):
        for result in await asyncio.gather(
            *(
                differences(both, family, sequence, f"s{start + number}")
                for number, sequence in enumerate(chosen[start : start + AT_ONCE])
            )
        ):
            found += result
    assert not found, f"{len(found)} of {len(chosen)} sequences differ:\n" + "\n".join(found)


async def events(side: Side, stream: StreamedResponse, last: str) -> list[str]:
    """What a watch tells until the object `last` is added. Of bookmarks, only the one that ends the initial events."""
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
    family, (transports, namespace) = CONFIG_MAPS, both
    collection = family.path.format(namespace=namespace)
    chosen = examples(sequences(family), 30)
    for number, sequence in enumerate(chosen[:10]):
        assert not await differences(both, family, sequence, f"before{number}")
    query = {
        "watch": "true",
        "labelSelector": "watched=yes",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": f"{SECONDS * 3}",
    }
    async with AsyncExitStack() as streams:
        opened = [
            await streams.enter_async_context(
                await transport.stream("GET", f"{collection}?{urlencode(query)}", timeout=SECONDS)
            )
            for transport in transports
        ]
        for number, sequence in enumerate(chosen[10:]):
            assert not await differences(both, family, sequence, f"live{number}")
        last = Step("POST", "last", _object(family, "last", {"labels": {"watched": "yes"}}, {}))
        assert not await differences(both, family, [last], "the")
        ours, theirs = [
            await events(Side(transport, collection, ""), stream, "the-last")
            for transport, stream in zip(transports, opened, strict=True)
        ]
    assert ours == theirs
    kinds = {event.partition('"type": ')[2] or event for event in ours}
    assert len(kinds) >= 4, "every type of event is among them"
