import copy
import subprocess
import sys
from datetime import datetime
from typing import Literal

import msgspec
import pytest

from kubewright.api.apps.v1 import Deployment
from kubewright.api.codec import decode, decode_list, encode, from_json, origin, remembered, to_json
from kubewright.api.errors import DecodeError, MalformedJSON
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import Model
from kubewright.api.quantity import Quantity
from kubewright.api.rbac.v1 import Role, RoleBinding
from kubewright.api.resources import Resource, resource
from kubewright.api.time import MicroTime, Time


class Item(Model):
    name: str
    weights: list[int] = []


class BoxSpec(Model):
    items: list[Item] = []
    by_name: dict[str, Item] = {}
    size: Quantity | None = None
    opened: Time | None = None
    renewed: MicroTime | None = None
    count: int = 1


@resource("example.com/v1")
class Box(Resource[BoxSpec, None]):
    pass


def test_scalars_of_kubernetes_survive_the_round_trip() -> None:
    raw = (
        b'{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"a","creationTimestamp":"2026-01-02T03:04:05Z"},'
        b'"spec":{"items":[],"byName":{},"size":"1000m","opened":"2026-01-02T03:04:05Z",'
        b'"renewed":"2026-01-02T03:04:05.000000Z","count":1}}'
    )
    box = decode(Box, raw)
    assert box.spec.size == Quantity("1")
    assert encode(box) == raw


def test_null_is_read_as_absent_or_empty_as_go_does() -> None:
    """Go servers answer `rules: null` for a Role without rules."""
    box = decode(
        Box,
        b'{"metadata":{"name":"a","labels":null},'
        b'"spec":{"items":[{"name":"x","weights":null}],"byName":{"k":{"name":"y","weights":null}},"count":null}}',
    )
    assert box.metadata.labels == {}
    assert box.spec == BoxSpec(items=[Item(name="x")], by_name={"k": Item(name="y")})


class Rope(Model):
    length: int = 7
    colour: str = "red"
    tags: list[str] = msgspec.field(default_factory=lambda: ["new"])


class KnotSpec(Model):
    rope: Rope = msgspec.field(default_factory=lambda: Rope(length=9))
    ropes: list[Rope] = []
    by_name: dict[str, Rope] = {}
    grid: list[dict[str, Rope]] = []
    is_tight: bool = True
    limit: Quantity = Quantity("5")
    note: str | None = "none"
    kind: Literal["bowline", "hitch"] = "hitch"


@resource("example.com/v1")
class Knot(Resource[KnotSpec, None]):
    pass


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ('"rope": null', KnotSpec()),
        ('"isTight": null', KnotSpec()),
        ('"limit": null', KnotSpec()),
        ('"kind": null', KnotSpec()),
        ('"ropes": null, "byName": null, "grid": null', KnotSpec()),
        ('"rope": {"length": null, "colour": null, "tags": null}', KnotSpec(rope=Rope())),
        ('"rope": {"length": null, "colour": "blue"}', KnotSpec(rope=Rope(colour="blue"))),
        ('"ropes": [{"length": null}, {"length": 1}]', KnotSpec(ropes=[Rope(), Rope(length=1)])),
        ('"byName": {"a": {"tags": null}}', KnotSpec(by_name={"a": Rope()})),
        ('"grid": [{"a": {"length": null}}, {}]', KnotSpec(grid=[{"a": Rope()}, {}])),
        # Beside a null that has to go, and alone: None is a value of this field.
        ('"note": null', KnotSpec(note=None)),
    ],
)
def test_null_in_a_field_with_a_default_is_the_default(field: str, expected: KnotSpec) -> None:
    """As a server prunes it before it applies the defaults of a schema."""
    assert decode(Knot, f'{{"metadata":{{"name":"a"}},"spec":{{{field}}}}}'.encode()).spec == expected


@pytest.mark.parametrize("field", ['"ropes": [null]', '"byName": {"a": null}', '"grid": [null]'])
def test_null_as_an_item_is_an_error(field: str) -> None:
    """An item has no default, and to leave it out would be to change what there is."""
    with pytest.raises(DecodeError, match=r'^Knot "a": '):
        decode(Knot, f'{{"metadata":{{"name":"a"}},"spec":{{{field}}}}}'.encode())


def test_null_in_a_built_in_kind_is_the_default_too() -> None:
    raw = (
        b'{"metadata":{"name":"a","labels":null,"finalizers":null},"spec":{"replicas":null,"minReadySeconds":null,'
        b'"selector":{"matchLabels":null},"template":{"metadata":null,"spec":{"containers":[{"name":"c","image":null,'
        b'"ports":null,"env":[{"name":"A","value":null}],"resources":{"limits":null}}],"volumes":null}}},"status":null}'
    )
    plain = (
        b'{"metadata":{"name":"a"},"spec":{"selector":{},"template":{"spec":{"containers":[{"name":"c",'
        b'"env":[{"name":"A"}],"resources":{}}]}}}}'
    )
    found, expected = decode(Deployment, raw), decode(Deployment, plain)
    assert (found.metadata, found.spec, found.status) == (expected.metadata, expected.spec, expected.status)
    # Go sends nil slices so, also where the field is required.
    assert decode(Role, b'{"metadata":{"name":"a"},"rules":null}').rules == []
    subject = b'{"metadata":{"name":"a"},"roleRef":{"apiGroup":"g","kind":"Role","name":"r"},"subjects":null}'
    assert decode(RoleBinding, subject).subjects == []


def test_null_in_a_required_field_is_an_error() -> None:
    with pytest.raises(DecodeError, match=r"name"):
        decode(Box, b'{"metadata":{"name":"a"},"spec":{"items":[{"name":null}]}}')


def test_an_error_names_the_object_and_the_field() -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Box, b'{"kind":"Box","metadata":{"name":"a","namespace":"shop"},"spec":{"count":"many"}}')
    assert str(caught.value) == 'Box "shop/a": not a valid Box: Expected `int`, got `str` - at `$.spec.count`'


@pytest.mark.parametrize(
    "raw", [b"", b"<html>", b'{"metadata":', b'{"metadata":{"name":"\xff"}}', b'{"metadata": 5, "x": ']
)
def test_malformed_json_is_an_error_of_its_own(raw: bytes) -> None:
    with pytest.raises(MalformedJSON):
        decode(Box, raw)


def test_an_object_keeps_its_json_and_one_made_in_python_has_none() -> None:
    raw = b'{"metadata":{"name":"a"},"spec":{}}'
    assert origin(decode(Box, raw)) == remembered(decode(Box, raw)) == raw
    assert origin(Box(spec=BoxSpec())) is remembered(Box(spec=BoxSpec())) is None


def test_a_manifest_is_kept_and_was_sent_by_no_server() -> None:
    box = copy.deepcopy(from_json(Box, {"metadata": {"name": "a"}, "spec": {"novel": 1}}))
    assert origin(box) is None
    assert remembered(box) == b'{"metadata":{"name":"a"},"spec":{"novel":1}}'


def test_a_list_is_decoded_item_by_item() -> None:
    metadata, boxes = decode_list(
        Box,
        b'{"kind":"BoxList","metadata":{"resourceVersion":"7","continue":"next"},'
        b'"items":[{"metadata":{"name":"a"},"spec":{}},{"metadata":{"name":"b"},"spec":{"unknown":1}}]}',
    )
    assert (metadata.resource_version, metadata.continue_) == ("7", "next")
    assert [box.metadata.name for box in boxes] == ["a", "b"]
    assert origin(boxes[1]) == b'{"metadata":{"name":"b"},"spec":{"unknown":1}}'


def test_an_empty_list_may_be_null() -> None:
    assert decode_list(Box, b'{"metadata":{},"items":null}')[1] == []


def test_a_time_without_time_zone_is_refused_with_its_field() -> None:
    box = Box(metadata=ObjectMeta(name="a"), spec=BoxSpec(opened=datetime(2026, 1, 2)))
    for write in (encode, to_json):
        with pytest.raises(ValueError, match=r"spec\.opened: the time 2026-01-02T00:00:00 has no time zone"):
            write(box)


def test_plain_values_become_objects() -> None:
    box = from_json(Box, {"metadata": {"name": "a"}, "spec": {"count": 2}})
    assert (box.metadata.name, box.spec.count) == ("a", 2)
    assert to_json(box.spec) == {"items": [], "byName": {}, "count": 2}


def test_parts_of_a_manifest_may_be_in_variables() -> None:
    """What this is about is checked by mypy: lists and dicts of one type are JSON, and so are mixed ones."""
    weights = [1, 2]
    labels = {"app": "web"}
    metadata = {"name": "a", "labels": labels}
    items = [{"name": "x", "weights": weights}]

    box = from_json(Box, {"metadata": metadata, "spec": {"items": items, "size": Quantity("1")}})

    assert (box.metadata.labels, box.spec.size) == (labels, Quantity("1"))
    assert box.spec.items == [Item(name="x", weights=weights)]


def test_a_value_without_a_json_form_is_named() -> None:
    with pytest.raises(TypeError, match=r"^object has no JSON form$"):
        from_json(Box, {"spec": {"size": object()}})


def test_threads_may_decode_the_first_object_of_a_kind_at_the_same_time() -> None:
    """In a process of its own, which crashed."""
    program = """
import sys, threading
from kubewright.api.apps.v1 import DaemonSet, Deployment, ReplicaSet, StatefulSet
from kubewright.api.codec import decode
sys.setswitchinterval(1e-6)
pod = b'{"containers":[{"name":"a","ports":[{"containerPort":80}]}],"volumes":[]}'
raw = b'{"metadata":{},"spec":{"selector":{},"serviceName":"a","template":{"spec":' + pod + b'}}}'
begin, decoded = threading.Barrier(4), []
def first(kind):
    begin.wait()
    decoded.append(decode(kind, raw).spec.template.spec.containers[0].ports[0].container_port)
threads = [threading.Thread(target=first, args=(kind,)) for kind in (DaemonSet, Deployment, ReplicaSet, StatefulSet)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(decoded)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr, ended.stdout) == (0, "", "[80, 80, 80, 80]\n")
