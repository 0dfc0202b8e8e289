from __future__ import annotations

from kubewright.api.core.v1 import Pod, PodTemplateSpec
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.model import Model
from kubewright.api.resources import Resource, resource
from kubewright.manifest.schema import schema_of
from kubewright.manifest.unknown_fields import unknown_fields


class Berth(Model):
    depth: int = 0


class Ship(Model, tag="Ship"):
    mast: Berth | None = None


class Boat(Model, tag="Boat"):
    oars: int = 2


class QuaySpec(Model):
    berths: list[Berth] = []
    by_name: dict[str, Berth] = {}
    free: dict[str, JSONValue] = {}
    anything: JSONValue = None
    surge: int | str | None = None
    template: PodTemplateSpec | None = None
    guard: Pod | None = None
    moored: Ship | Boat | None = None


@resource("unknown.kubewright.test/v1")
class Quay(Resource[QuaySpec, None]):
    """Where ships are."""


def found(spec: JSONObject) -> list[str]:
    obj: JSONValue = {
        "apiVersion": "unknown.kubewright.test/v1",
        "kind": "Quay",
        "metadata": {"name": "it"},
        "spec": spec,
    }
    return [each.path for each in unknown_fields(schema_of(Quay), obj)]


def test_fields_that_no_schema_has_are_found_wherever_they_are() -> None:
    spec: JSONObject = {
        "berth": [],
        "berths": [{"depth": 1}, {"deph": 1}],
        "byName": {"deep": {"depth": 1, "width": 2}},
        "template": {"spec": {"container": []}},
        "guard": {"metadata": {"name": "it"}, "spec": {"containers": [{"name": "it", "img": "it"}]}},
        "moored": {"type": "Ship", "mast": {"height": 1}},
    }
    assert found(spec) == [
        "spec.berth",
        "spec.berths[1].deph",
        "spec.byName.deep.width",
        "spec.template.spec.container",
        "spec.guard.spec.containers[0].img",
        "spec.moored.mast.height",
    ]


def test_what_may_have_any_fields_has_no_unknown_ones() -> None:
    spec: JSONObject = {
        "free": {"a": {"b": 1}},
        "anything": {"a": [{"b": 1}]},
        "surge": "5%",
        "template": {"metadata": {"labels": {"a": "b"}, "creationTimestamp": None}},
        "guard": {"apiVersion": "v1", "kind": "Pod", "metadata": {"uid": "it"}},
        "moored": {"type": "Boat", "oars": 4},
    }
    assert found(spec) == []
