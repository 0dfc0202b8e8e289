"""The real server accepts rendered definitions under strict validation, and accepts and refuses what the type does."""

import asyncio
import contextlib
import enum
import http.client
import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Literal, cast
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Meta, UnsetType

from kubewright.api.codec import decode_model, to_json
from kubewright.api.core.v1 import Container, ContainerPort, Pod, PodSpec, PodTemplateSpec
from kubewright.api.errors import DecodeError
from kubewright.api.int_or_string import IntOrString
from kubewright.api.markers import Atomic, Base64, Choice, Int32, JSONValue, ListMap, ListSet
from kubewright.api.meta import Condition, LabelSelector, ObjectMeta
from kubewright.api.model import Model
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Column, Object, Resource, Scale, resource, resource_info
from kubewright.api.time import MicroTime, Time
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.https import request
from kubewright.manifest.crd import crd_yaml

GROUP = "manifest.kubewright.test"


@pytest.fixture
def control_plane(real_control_plane: ControlPlane) -> ControlPlane:
    """The one that `namespace` is on."""
    return real_control_plane


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Port(Model):
    """A port and its number."""

    name: str
    number: Annotated[Int32, Meta(ge=1, le=65535)] = 80


class Limits(Model):
    cpu: Quantity = Quantity("100m")
    burst: bool = False


class RichSpec(Model):
    """Everything a schema can express."""

    name: Annotated[str, Meta(min_length=1, max_length=5, pattern="^[a-zé]+$", description="A short name.")]
    needed: str | None
    size: Annotated[int, Meta(ge=1, lt=10)] = 3
    even: Annotated[int, Meta(multiple_of=2)] = 0
    ratio: Annotated[float, Meta(gt=0, le=1, title="Ratio", examples=[0.5])] | None = None
    active: bool = False
    color: Color = Color.RED
    level: Level | None = None
    policy: Choice[Literal["Always", "Never"]] = "Always"
    mode: Literal["a", "b"] | UnsetType | None = UNSET
    limit: int | UnsetType | None = UNSET
    preset: int | None = 7
    names: Annotated[list[str], Meta(max_length=3), ListSet()] = []
    ports: Annotated[list[Port], ListMap("name"), Meta(max_length=2)] = []
    labels: Annotated[dict[str, Annotated[str, Meta(max_length=3)]], Meta(max_length=2), Atomic()] = {}
    sparse: list[int | None] = []
    matrix: list[list[int]] = []
    anything: JSONValue = {"a": 1}
    things: list[JSONValue] = []
    free: dict[str, JSONValue] = {}
    memory: Quantity | None = None
    surge: IntOrString = "25%"
    data: bytes = b""
    secret: Base64 = ""
    at: Time | None = None
    renewed: MicroTime | None = None
    limits: Limits = Limits(burst=True)
    more: Limits | None = None
    selector: LabelSelector | None = None


class RichStatus(Model):
    ready: Int32 = 0
    size: int = 0
    selector: str = ""
    conditions: Annotated[list[Condition], ListMap("type")] = []


@resource(
    f"{GROUP}/v1",
    plural="riches",
    short_names=["ri"],
    categories=["kubewright"],
    columns=[
        Column("Size", ".spec.size"),
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status', description="Whether it is."),
        Column("Since", ".spec.at", priority=1),
    ],
    scale=Scale(".spec.size", ".status.size", ".status.selector"),
    selectable_fields=[".spec.color"],
)
class Rich(Resource[RichSpec, RichStatus]):
    """A kind with everything."""


class EmbeddingSpec(Model):
    template: PodTemplateSpec
    pod: Pod | None = None
    extra_ports: Annotated[list[ContainerPort], ListMap("containerPort", "protocol")] = []


@resource(f"{GROUP}/v1")
class Embedding(Resource[EmbeddingSpec, None]):
    pass


class OldSpec(Model):
    width: int = 1


@resource(f"{GROUP}/v1", kind="Versioned", storage=False, deprecated="use v2")
class VersionedV1(Resource[OldSpec, None]):
    pass


@resource(f"{GROUP}/v2", kind="Versioned")
class VersionedV2(Resource[OldSpec, None]):
    pass


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(real_control_plane: ControlPlane) -> AsyncIterator[ControlPlane]:
    """A server that accepted, under strict validation, the definitions of the kinds above, and serves them."""
    kinds: list[list[type[Object]]] = [[Rich], [Embedding], [VersionedV1, VersionedV2]]
    manifests = "---\n".join(crd_yaml(*versions) for versions in kinds)
    await real_control_plane.kubectl("create", "--validate=strict", "-f", "-", input=manifests)
    context = real_control_plane.admin.ssl_context()
    deadline = time.monotonic() + 20
    for versions in kinds:
        while request(real_control_plane.url, context, "GET", collection(versions[0]))[0] != http.HTTPStatus.OK:
            assert time.monotonic() < deadline, f"{versions[0].__name__} is not served"
            await asyncio.sleep(0.02)
    yield real_control_plane
    await real_control_plane.kubectl("delete", "--wait=false", "-f", "-", input=manifests)


def collection(cls: type[Object]) -> str:
    info = resource_info(cls)
    return f"/apis/{info.gvk.api_version}/namespaces/default/{info.plural}"


def verdicts(plane: ControlPlane, cls: type[Object], specs: Sequence[JSONValue]) -> list[JSONValue]:
    """For each spec, what the server would store; None where it refuses."""
    gvk = resource_info(cls).gvk
    path = f"{collection(cls)}?dryRun=All&fieldValidation=Strict"
    address = urlsplit(plane.url)
    connection = http.client.HTTPSConnection(str(address.hostname), address.port, context=plane.admin.ssl_context())
    stored: list[JSONValue] = []
    with contextlib.closing(connection):
        for spec in specs:
            manifest = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": "one"}, "spec": spec}
            connection.request("POST", path, json.dumps(manifest).encode(), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            body = answer.read()
            # A refusal for anything but the content of the spec would make the comparison meaningless.
            assert answer.status in (http.HTTPStatus.CREATED, http.HTTPStatus.UNPROCESSABLE_ENTITY), (spec, body)
            stored.append(json.loads(body)["spec"] if answer.status == http.HTTPStatus.CREATED else None)
    return stored


def decoded(spec: JSONValue) -> JSONValue:
    """What the type makes of a spec and would send; None when it refuses it."""
    try:
        return to_json(decode_model(RichSpec, json.dumps(spec).encode()))
    except DecodeError:
        return None


MINIMAL: dict[str, JSONValue] = {"name": "abc", "needed": None}
ACCEPTED: list[dict[str, JSONValue]] = [
    {},
    {"needed": "yes"},
    {"name": "é" * 5},
    {"size": 1},
    {"size": 9},
    {"even": -4},
    {"ratio": 1},
    {"ratio": 1e-300},
    {"color": "blue", "level": 2, "policy": "Never"},
    {"mode": None, "limit": None, "preset": None},
    {"mode": "b", "limit": -(2**63), "preset": 2**63 - 1},
    {"names": ["a", "b", "c"]},
    {"ports": [{"name": "a"}, {"name": "b", "number": 65535}]},
    {"labels": {"a": "xyz", "example.com/b": ""}},
    {"sparse": [1, None], "matrix": [[], [1, 2]]},
    {"anything": None, "things": [None, 1.5, "a", [None], {"b": None}], "free": {"a": None, "b": {"c": [1]}}},
    {"anything": [1, {"b": None}]},
    {"memory": "1.5Gi"},
    {"memory": "1e3"},
    {"memory": 2, "surge": 3},
    {"surge": "50%"},
    {"data": "YQ==", "secret": "YWJj"},
    {"at": "2026-01-01T00:00:00Z", "renewed": "2026-01-01T00:00:00.5Z"},
    {"at": "2026-01-01T00:00:00.123456+05:30"},
    {"limits": {}, "more": {"cpu": 1}},
    {"selector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}], "matchLabels": {"c": "d"}}},
]
REFUSED: list[dict[str, JSONValue]] = [
    {"name": ""},
    {"name": "abcdef"},
    {"name": "ABC"},
    {"name": 1},
    {"needed": 1},
    {"size": 0},
    {"size": 10},
    {"size": "3"},
    {"even": 3},
    {"ratio": 0},
    {"ratio": 1.5},
    {"active": "true"},
    {"color": "green"},
    {"level": 3},
    {"mode": "c"},
    {"limit": "x"},
    {"names": ["a", "b", "c", "d"]},
    {"names": [1]},
    {"names": "a"},
    {"ports": [{}]},
    {"ports": [{"name": "a", "number": 0}]},
    {"ports": [{"name": "a"}, {"name": "b"}, {"name": "c"}]},
    {"labels": {"a": "wxyz"}},
    {"labels": {"a": "", "b": "", "c": ""}},
    {"sparse": ["a"]},
    {"matrix": [1]},
    {"things": {}},
    {"free": []},
    {"memory": "much"},
    {"memory": True},
    {"surge": 1.5},
    {"surge": []},
    {"data": "YQ"},
    {"data": "not base64!"},
    {"at": "yesterday"},
    {"at": "2026-01-01"},
    {"renewed": 1},
    {"limits": {"cpu": []}},
    {"more": {"burst": 1}},
    {"selector": {"matchExpressions": [{"key": "a"}]}},
]


def test_the_server_refuses_what_the_type_refuses_and_stores_all_of_what_it_accepts(served: ControlPlane) -> None:
    sent = [decoded(MINIMAL | spec) for spec in ACCEPTED]
    assert None not in sent
    assert verdicts(served, Rich, sent) == sent

    refused: list[JSONValue] = [MINIMAL | spec for spec in REFUSED]
    refused += [{"name": "abc"}, {"needed": None}, None]
    assert [spec for spec in refused if decoded(spec) is not None] == []
    stored = verdicts(served, Rich, refused)
    assert [spec for spec, result in zip(refused, stored, strict=True) if result is not None] == []


def test_the_server_fills_in_the_defaults_of_the_type(served: ControlPlane) -> None:
    partial: list[JSONValue] = [MINIMAL | {"limits": {}}, MINIMAL | {"ports": [{"name": "a"}], "more": {"burst": True}}]
    assert verdicts(served, Rich, partial) == [decoded(spec) for spec in partial]


candidates: st.SearchStrategy[dict[str, JSONValue]] = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["abc", "abz"]) | st.text("abzéA-", max_size=6),
        "needed": st.none() | st.text(max_size=3),
    },
    optional={
        "size": st.integers(-1, 11),
        "even": st.integers(-3, 3),
        "ratio": st.floats(-0.5, 1.5),
        "active": st.booleans(),
        "color": st.sampled_from(["red", "blue", "RED", ""]),
        "level": st.integers(0, 3),
        "mode": st.sampled_from(["a", "b", None, "c"]),
        "limit": st.none() | st.integers(-(2**63), 2**63 - 1),
        "preset": st.none() | st.integers(-5, 5),
        "names": st.lists(st.text(max_size=2), max_size=4, unique=True),
        "ports": st.lists(
            st.fixed_dictionaries({"name": st.text("ab", max_size=2)}, optional={"number": st.integers(0, 65536)}),
            max_size=3,
            unique_by=lambda port: cast("dict[str, str]", port)["name"],
        ),
        "labels": st.dictionaries(st.text("ab/.", max_size=3), st.text(max_size=4), max_size=3),
        "sparse": st.lists(st.none() | st.integers(-9, 9), max_size=3),
        "anything": st.recursive(
            st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=2),
            max_leaves=4,
        ),
        "free": st.dictionaries(st.text(max_size=3), st.none() | st.integers(-9, 9), max_size=3),
        "memory": st.sampled_from([1, "1", "0.5", ".5", "1Gi", "1e3", "5E", "-1m", "x", "1 Gi", "1kk"]),
        "surge": st.integers(-9, 9) | st.text("0%a", max_size=3),
        "data": st.sampled_from(["", "YQ==", "YWI=", "YWJj", "YQ=", "YQ", "=", "YW J"]),
        "at": st.datetimes().map(lambda moment: f"{moment.isoformat()}Z") | st.text(max_size=3),
    },
)


def test_the_server_and_the_type_agree_on_random_specs(served: ControlPlane) -> None:
    specs: list[dict[str, JSONValue]] = []

    @settings(
        max_examples=200,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(candidates)
    def collect(spec: dict[str, JSONValue]) -> None:
        specs.append(spec)

    collect()
    expected = [decoded(spec) for spec in specs]
    accepted = sum(spec is not None for spec in expected)
    assert 10 < accepted < len(specs) - 10, "the candidates must include enough of both"

    stored = verdicts(served, Rich, [sent or spec for sent, spec in zip(expected, specs, strict=True)])
    assert stored == expected


async def test_columns_scale_and_selectable_fields_work(served: ControlPlane, namespace: str) -> None:
    kubectl = served.kubectl
    rich = Rich(metadata=ObjectMeta(name="one", namespace=namespace), spec=RichSpec(name="abc", needed=None))
    await kubectl("create", "--validate=strict", "-f", "-", input=json.dumps(to_json(rich)))
    condition = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Done"}
    await kubectl(
        *("patch", "rich/one", "--namespace", namespace, "--subresource=status", "--type=merge"),
        *("--patch", json.dumps({"status": {"conditions": [condition]}})),
    )
    await kubectl("scale", "rich/one", "--namespace", namespace, "--replicas=5")

    listed = await kubectl("get", "ri", "--namespace", namespace, "--field-selector", "spec.color=red")
    header, row = (line.split() for line in listed.stdout.splitlines())
    assert header == ["NAME", "SIZE", "READY", "AGE"]
    assert row[:3] == ["one", "5", "True"]
    other = await kubectl("get", "ri", "--namespace", namespace, "--field-selector", "spec.color=blue", "-o", "name")
    assert other.stdout == ""


def test_embedded_structures_keep_their_data(served: ControlPlane) -> None:
    metadata = ObjectMeta(labels={"app": "web"}, annotations={"a": "b"}, generate_name="web-")
    container = Container(
        name="web",
        image="nginx",
        ports=[ContainerPort(container_port=80, protocol="TCP")],
        image_pull_policy="Always",
    )
    spec = EmbeddingSpec(
        template=PodTemplateSpec(metadata=metadata, spec=PodSpec(containers=[container])),
        pod=Pod(metadata=metadata, spec=PodSpec(containers=[container], restart_policy="Never")),
        extra_ports=[ContainerPort(container_port=81, protocol="UDP")],
    )
    sent = cast("dict[str, Any]", to_json(spec))
    without_protocol = json.loads(json.dumps(sent))
    del without_protocol["template"]["spec"]["containers"][0]["ports"][0]["protocol"]
    from_kubectl = json.loads(json.dumps(sent))
    from_kubectl["template"]["metadata"]["creationTimestamp"] = None
    unknown_value = json.loads(json.dumps(sent))
    unknown_value["template"]["spec"]["restartPolicy"] = "Sometimes"

    assert verdicts(served, Embedding, [sent, without_protocol, from_kubectl, unknown_value]) == [
        sent,
        sent,
        from_kubectl,
        None,
    ]


def test_several_versions_are_served(served: ControlPlane) -> None:
    assert verdicts(served, VersionedV1, [{}]) == [{"width": 1}]
    assert verdicts(served, VersionedV2, [{"width": 2}]) == [{"width": 2}]
