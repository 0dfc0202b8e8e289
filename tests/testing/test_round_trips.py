from __future__ import annotations

import sys
from typing import Annotated, Any, Literal, Self

import pytest
from msgspec import UNSET, UnsetType
from tests.manifest.test_crd_on_a_server import RichSpec, RichStatus
from tests.webhook.boats import Boat, BoatV1Alpha1, BoatV1Beta1

from kubewright import Meta, Model, Resource, resource
from kubewright.testing import assert_round_trips

GROUP = "trips.testing.test"


@resource(f"{GROUP}/v1", kind="Rich")
class RichHub(Resource[RichSpec, RichStatus]):
    """Has everything that a type can have."""


@resource(f"{GROUP}/v1beta1", kind="Rich", storage=False)
class RichSpoke(Resource[RichSpec, RichStatus]):
    """Has the same."""

    def to_hub(self) -> RichHub:
        return RichHub(spec=self.spec, status=self.status)

    @classmethod
    def from_hub(cls, hub: RichHub) -> Self:
        return cls(spec=hub.spec, status=hub.status)


def test_values_of_all_types_are_tried() -> None:
    assert_round_trips(RichSpoke, RichHub, examples=8)


class CupSpec(Model):
    handles: Annotated[int, Meta(ge=0, le=4)] = 1
    colour: Literal["red", "blue"] = "red"
    note: str | UnsetType | None = UNSET


class MugSpec(Model):
    handles: int = 1
    colour: str = "red"


@resource(f"{GROUP}/v1")
class Cup(Resource[CupSpec, None]):
    """Holds tea."""


@resource(f"{GROUP}/v1beta1", kind="Cup", storage=False)
class Mug(Resource[MugSpec, None]):
    """Is converted by each test."""

    def to_hub(self) -> Cup:
        return Cup(spec=CupSpec(handles=max(0, min(self.spec.handles, 4))))

    @classmethod
    def from_hub(cls, hub: Cup) -> Self:
        return cls(spec=MugSpec(handles=hub.spec.handles))


def test_a_forgotten_field_is_named_with_the_simplest_object() -> None:
    with pytest.raises(AssertionError) as found:
        assert_round_trips(Mug, Cup, stashed=["spec.handles"])
    first, obj, advice = str(found.value).splitlines()
    assert first.startswith('from Mug to Cup and back: spec.colour was "')
    assert first.endswith('" and is "red"')
    assert obj.startswith('  the object: {"spec":{"handles":1,"colour":"')
    assert advice == '  if that is because Cup cannot express it, write stashed=["spec.colour"]'


def test_what_is_declared_as_stashed_is_kept_by_the_annotation() -> None:
    assert_round_trips(Mug, Cup, stashed=["spec.handles", "spec.colour", "spec.note"], examples=30)
    lost = ["spec.engine", "spec.flag", "spec.cabins[].view", "spec.route[].miles", "status.depth", "spec.nickname"]
    with pytest.raises(AssertionError, match=r"BoatV1Beta1.to_hub returned is not valid: .*spec.crew"):
        assert_round_trips(BoatV1Beta1, Boat, stashed=lost)
    lost = ["spec.crew", "spec.engine", "spec.flag", "spec.cabins", "spec.route"]
    assert_round_trips(BoatV1Alpha1, Boat, stashed=lost, examples=30)


def test_a_converter_that_fails_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def picky(mug: Mug) -> Cup:
        if mug.spec.handles > 1000:
            raise ValueError("too many handles")
        return Cup(spec=CupSpec())

    monkeypatch.setattr(Mug, "to_hub", picky)
    with pytest.raises(
        AssertionError, match=r"Mug.to_hub failed: ValueError: too many handles\n.*\"handles\":1001"
    ) as e:
        assert_round_trips(Mug, Cup, stashed=["spec"])
    assert isinstance(e.value.__cause__, ValueError)


def test_without_hypothesis_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "hypothesis", missing)
    with pytest.raises(RuntimeError, match="needs the package hypothesis: pip install hypothesis"):
        assert_round_trips(Mug, Cup)


def test_mistakes_in_the_declaration_come_first() -> None:
    swapped: Any = Cup
    with pytest.raises(TypeError, match="Mug cannot be the hub"):
        assert_round_trips(swapped, Mug)
