"""A kind in three versions: each has something that another one cannot express."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from kubewright import Meta, Model, Resource, resource
from kubewright.api.markers import JSONObject, JSONValue, ListMap

GROUP = "boats.webhook.test"


class Cabin(Model):
    name: str
    beds: int = 1
    view: str | None = None


class Leg(Model):
    to: str
    miles: int = 0


class BoatSpec(Model):
    owner: str
    crew: Annotated[int, Meta(ge=0)] = 1
    engine: Literal["none", "diesel", "electric"] = "none"
    cabins: Annotated[list[Cabin], ListMap("name")] = []
    route: list[Leg] = []
    flag: str | None = None


class BoatStatus(Model):
    position: str = ""
    depth: int = 0


@resource(f"{GROUP}/v1")
class Boat(Resource[BoatSpec, BoatStatus]):
    """Floats."""


class BerthsV1Beta1(Model):
    name: str
    beds: int = 1


class BoatV1Beta1Spec(Model):
    owner: str
    sailors: int = 1
    motor: bool = False
    cabins: Annotated[list[BerthsV1Beta1], ListMap("name")] = []
    stops: list[str] = []
    nickname: str | None = None


class BoatV1Beta1Status(Model):
    position: str = ""


@resource(f"{GROUP}/v1beta1", kind="Boat", storage=False)
class BoatV1Beta1(Resource[BoatV1Beta1Spec, BoatV1Beta1Status]):
    """Has no view, no miles, no flag and no depth; one kind of engine; but a nickname."""

    def to_hub(self) -> Boat:
        spec = self.spec
        return Boat(
            spec=BoatSpec(
                owner=spec.owner,
                crew=spec.sailors,
                engine="diesel" if spec.motor else "none",
                cabins=[Cabin(name=each.name, beds=each.beds) for each in spec.cabins],
                route=[Leg(to=stop) for stop in spec.stops],
            ),
            status=BoatStatus(position=self.status.position),
        )

    @classmethod
    def from_hub(cls, hub: Boat) -> Self:
        spec = hub.spec
        return cls(
            spec=BoatV1Beta1Spec(
                owner=spec.owner,
                sailors=spec.crew,
                motor=spec.engine != "none",
                cabins=[BerthsV1Beta1(name=each.name, beds=each.beds) for each in spec.cabins],
                stops=[leg.to for leg in spec.route],
            ),
            status=BoatV1Beta1Status(position=hub.status.position),
        )


class BoatV1Alpha1Spec(Model):
    owner: str = ""
    first_stop: str | None = None


@resource(f"{GROUP}/v1alpha1", kind="Boat", storage=False)
class BoatV1Alpha1(Resource[BoatV1Alpha1Spec, BoatStatus]):
    """Has next to nothing."""

    def to_hub(self) -> Boat:
        route = [Leg(to=self.spec.first_stop)] if self.spec.first_stop is not None else []
        return Boat(spec=BoatSpec(owner=self.spec.owner, route=route), status=self.status)

    @classmethod
    def from_hub(cls, hub: Boat) -> Self:
        first = hub.spec.route[0].to if hub.spec.route else None
        return cls(spec=BoatV1Alpha1Spec(owner=hub.spec.owner, first_stop=first), status=hub.status)


METADATA: dict[str, Any] = {
    "name": "ship",
    "namespace": "sea",
    "uid": "1c7b2cb8",
    "resourceVersion": "7",
    "generation": 2,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "labels": {"a": "b"},
    "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
    "finalizers": ["sea.test/anchor"],
    "managedFields": [
        {"manager": "eve", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:owner": {}}}}
    ],
    "later": "unknown",
}


def boat(version: str, spec: JSONObject, status: JSONObject | None = None, **metadata: JSONValue) -> JSONObject:
    obj: JSONObject = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "Boat",
        "metadata": {**METADATA, **metadata},
        "spec": spec,
    }
    return obj if status is None else {**obj, "status": status}
