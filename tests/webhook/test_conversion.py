"""Conversion between versions: nothing is lost, and nothing that was changed meanwhile is overridden."""

from __future__ import annotations

import copy
import json
import logging
from typing import Any, Self

import pytest
from tests.webhook.boats import GROUP, METADATA, Boat, BoatSpec, BoatV1Alpha1, BoatV1Beta1, boat

from kubewright import Model, ObjectMeta, Resource, resource
from kubewright.api.markers import JSONObject
from kubewright.webhook import converts
from kubewright.webhook.conversion_step import ConversionError
from kubewright.webhook.stash import ANNOTATION, MAX_ANNOTATIONS_SIZE

VERSIONS = converts(Boat, BoatV1Beta1, BoatV1Alpha1)

FULL: JSONObject = {
    "owner": "ann",
    "crew": 3,
    "engine": "electric",
    "cabins": [{"name": "a", "beds": 2, "view": "sea"}, {"name": "b", "beds": 1, "view": "sky"}],
    "route": [{"to": "Oslo", "miles": 5}, {"to": "Rome", "miles": 7}],
    "flag": "blue",
}


def to(version: str, obj: JSONObject) -> Any:
    before = copy.deepcopy(obj)
    converted = VERSIONS.convert(obj, f"{GROUP}/{version}")
    assert obj == before
    assert converted["apiVersion"] == f"{GROUP}/{version}"
    return converted


def stash(obj: Any) -> Any:
    text = obj["metadata"].get("annotations", {}).get(ANNOTATION)
    return text and json.loads(text)


def test_content_goes_by_the_methods_and_metadata_is_carried_along() -> None:
    made = to("v1beta1", boat("v1", {"owner": "ann", "crew": 3, "engine": "diesel"}, {"position": "x", "depth": 0}))
    assert made["spec"] == {"owner": "ann", "sailors": 3, "motor": True, "cabins": [], "stops": []}
    assert made["status"] == {"position": "x"}
    assert made["metadata"] == METADATA, "and nothing is stashed, as nothing is lost"
    assert (made["kind"], list(made)) == ("Boat", ["apiVersion", "kind", "metadata", "spec", "status"])


@pytest.mark.parametrize("version", ["v1beta1", "v1alpha1"])
def test_what_a_spoke_cannot_express_is_back_in_the_hub(version: str) -> None:
    original = boat("v1", FULL, {"position": "x", "depth": 9})
    made = to(version, original)
    assert stash(made).keys() == {"v1"}
    assert to("v1", made) == original
    assert json.dumps(to(version, to("v1", made))) == json.dumps(made), "converting twice gives the same bytes"


def test_what_the_hub_cannot_express_is_back_in_the_spoke() -> None:
    original = boat("v1beta1", {"owner": "ann", "sailors": 2, "motor": True, "nickname": "nan"})
    stored = to("v1", original)
    assert stash(stored) == {"v1beta1": {"lost": {"spec": {"nickname": "nan"}}, "kept": {"spec": {}}}}
    assert stored["spec"] == {"owner": "ann", "crew": 2, "engine": "diesel", "cabins": [], "route": []}
    again = to("v1beta1", stored)
    assert again["spec"] == {**original["spec"], "cabins": [], "stops": []}  # type: ignore[dict-item]
    assert stash(again) is None
    # Another spoke does not take it, and it is there afterwards.
    assert to("v1beta1", to("v1", to("v1alpha1", stored))) == again
    assert to("v1beta1", to("v1alpha1", original)) == again, "through the hub"


def test_both_directions_at_once() -> None:
    stored = to("v1", boat("v1beta1", {"owner": "ann", "nickname": "nan"}))
    stored["spec"] |= FULL
    seen = to("v1beta1", stored)
    assert seen["spec"]["nickname"] == "nan"
    assert stash(seen).keys() == {"v1"}
    seen["spec"]["nickname"] = "annie"
    kept = to("v1", seen)
    assert kept["spec"] == FULL
    assert to("v1beta1", kept)["spec"]["nickname"] == "annie"


def test_a_stash_never_overrides_what_was_changed_meanwhile() -> None:
    seen = to("v1beta1", boat("v1", FULL, {"position": "x", "depth": 9}))
    seen["spec"]["motor"] = False
    seen["spec"]["cabins"] = [{"name": "c", "beds": 4}, {"name": "b", "beds": 6}]
    seen["spec"]["stops"][1] = "Bari"
    seen["status"]["position"] = "y"
    stored = to("v1", seen)
    assert stored["spec"] == {
        "owner": "ann",
        "crew": 3,
        "engine": "none",
        "cabins": [{"name": "c", "beds": 4}, {"name": "b", "beds": 6, "view": "sky"}],
        "route": [{"to": "Oslo", "miles": 5}, {"to": "Bari", "miles": 7}],
        "flag": "blue",
    }
    assert stored["status"] == {"position": "y", "depth": 9}

    stored = to("v1", boat("v1beta1", {"owner": "ann", "motor": True, "nickname": "nan"}))
    stored["spec"]["engine"], stored["spec"]["owner"] = "none", "bob"
    seen = to("v1beta1", stored)
    assert (seen["spec"]["motor"], seen["spec"]["owner"], seen["spec"]["nickname"]) == (False, "bob", "nan")


def test_items_that_a_spoke_does_not_show_stay_when_the_others_change(caplog: pytest.LogCaptureFixture) -> None:
    seen = to("v1alpha1", boat("v1", {"owner": "ann", "route": [{"to": "Oslo", "miles": 0}, {"to": "Rome"}]}))
    seen["spec"]["firstStop"] = "Bari"
    stored = to("v1", seen)
    assert stored["spec"]["route"] == [{"to": "Bari", "miles": 0}, {"to": "Rome", "miles": 0}]
    (record,) = caplog.records
    assert record.getMessage().startswith("the list spec.route was changed in v1alpha1, and has in v1 what that cannot")
    assert record.__dict__["object"] == "Boat sea/ship"


def test_fields_that_the_type_does_not_know_survive() -> None:
    spec: JSONObject = {"owner": "ann", "sail": {"area": 3}, "cabins": [{"name": "a", "lock": "yes"}]}
    original = boat("v1", spec, {"wind": "north"})
    made = to("v1beta1", original)
    assert "sail" not in made["spec"]
    made["spec"]["cabins"][0]["beds"] = 5
    stored = to("v1", made)
    assert stored["spec"]["sail"] == {"area": 3}
    assert stored["spec"]["cabins"] == [{"name": "a", "beds": 5, "lock": "yes"}]
    assert stored["status"]["wind"] == "north"


def test_the_same_version_is_returned_as_it_is() -> None:
    original = boat("v1", {"anything": "goes"})
    assert VERSIONS.convert(original, f"{GROUP}/v1") is original


def test_what_was_removed_in_the_spoke_does_not_come_back() -> None:
    seen = to("v1beta1", boat("v1", FULL))
    seen["spec"]["cabins"], seen["spec"]["stops"] = [], []
    stored = to("v1", seen)
    assert (stored["spec"]["cabins"], stored["spec"]["route"]) == ([], [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("no JSON", "JSON is malformed"),
        ("[]", "Expected `object`, got `array`"),
        ('{"v1": {"lost": 3}}', "Expected `object`, got `int`"),
        ('{"v1": {"found": {}}}', "unknown field `found`"),
        ('{"v1": {"lost": {"spec": {"crew": -1}}, "kept": {"spec": {"crew": 3}}}}', ">= 0"),
        ('{"v1": {"lost": {}, "kept": {"spec": {"owner": "ann"}}}, "v9": 3}', "Expected `object`, got `int`"),
        ('{"v1": {"lost": {"metadata": {"name": "other"}}, "kept": {}}}', "it has metadata, which is never stashed"),
        ('{"v1beta1": {"lost": {}, "kept": {}}}', "it has a part of v1beta1 itself"),
        ("[" * 5000, ""),
    ],
)
def test_nothing_is_stored_when_the_stash_was_tampered_with(text: str, reason: str) -> None:
    seen = to("v1beta1", boat("v1", FULL))
    seen["metadata"]["annotations"][ANNOTATION] = text
    with pytest.raises(
        ConversionError, match=f"Boat sea/ship: its annotation {ANNOTATION}, .* cannot be used"
    ) as raised:
        to("v1", seen)
    assert reason in str(raised.value)
    assert "remove the annotation to do without" in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        '{"v1beta1": {"lost": {"spec": {"nickname": 3}}, "kept": {"spec": {}}}}',
        '{"v1beta1": {"lost": {"apiVersion": "other/v1"}, "kept": {}}}',
        '{"v1beta1": {"lost": {"metadata": {"name": "other"}}, "kept": {}}}',
    ],
)
def test_an_object_whose_stash_was_tampered_with_can_still_be_read(text: str, caplog: pytest.LogCaptureFixture) -> None:
    annotations: JSONObject = {ANNOTATION: text}
    seen = to("v1beta1", boat("v1", FULL, annotations=annotations))
    assert seen["spec"]["owner"] == "ann"
    assert seen["metadata"]["name"] == "ship"
    with pytest.raises(ConversionError, match=r"its annotation .* cannot be used"):
        to("v1", seen)  # without what v1beta1 cannot express
    assert f"the annotation {ANNOTATION} cannot be used" in caplog.records[0].getMessage()


def test_an_object_whose_stash_cannot_be_converted_can_still_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise whoever can write one object could make lists fail for everybody."""
    convert = BoatV1Beta1.to_hub

    def to_hub(self: BoatV1Beta1) -> Boat:
        if self.spec.nickname == "Hades":
            raise ValueError("there are no such boats")
        return convert(self)

    monkeypatch.setattr(BoatV1Beta1, "to_hub", to_hub)
    text = '{"v1beta1": {"lost": {"spec": {"nickname": "Hades"}}, "kept": {"spec": {}}}}'
    seen = to("v1beta1", boat("v1", FULL, annotations={ANNOTATION: text}))
    assert (seen["spec"]["owner"], "nickname" in seen["spec"]) == ("ann", False)


def test_without_room_in_the_annotations_an_object_can_be_read_but_not_stored() -> None:
    original = boat("v1", {**FULL, "flag": "x" * MAX_ANNOTATIONS_SIZE})
    seen = to("v1beta1", original)
    assert stash(seen)["v1"].keys() == {"omitted"}
    with pytest.raises(ConversionError, match=r"there was no room for 262.* bytes in the annotations; change"):
        to("v1", seen)
    with pytest.raises(ConversionError, match=r"v1 cannot express 262.* which may have 262144 bytes in total"):
        to("v1", boat("v1beta1", {"owner": "ann", "nickname": "x" * MAX_ANNOTATIONS_SIZE}))


def test_an_unknown_version_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ConversionError, match=r"Boat has no version .*/v9 here, only .*/v1, .*/v1beta1, .*/v1alpha1"):
        to("v9", boat("v1", FULL))
    with pytest.raises(ConversionError, match=r"Boat has no version .*/v8 here"):
        to("v1", boat("v8", FULL))


def test_what_is_missing_is_zero_as_server_side_apply_has_partial_objects_converted() -> None:
    partial = boat("v1beta1", {"cabins": [{"beds": 2}]})
    made = to("v1", partial)
    assert (made["spec"]["owner"], made["spec"]["cabins"]) == ("", [{"name": "", "beds": 2}])
    del partial["spec"]
    assert to("v1", partial)["spec"] == {"owner": "", "crew": 1, "engine": "none", "cabins": [], "route": []}


def test_an_object_that_does_not_fit_its_type_is_named_with_the_field() -> None:
    with pytest.raises(ConversionError, match=r'Boat sea/ship cannot be read: Boat "sea/ship": .*spec.crew'):
        to("v1beta1", boat("v1", {"owner": "ann", "crew": -1}))
    with pytest.raises(ConversionError, match=r"what BoatV1Beta1.to_hub returned is not valid: .*spec.crew"):
        to("v1", boat("v1beta1", {"owner": "ann", "sailors": -1}))


class RaftSpec(Model):
    logs: int = 1


@resource("rafts.webhook.test/v1")
class Raft(Resource[RaftSpec, None]):
    """Floats, barely."""


@resource("rafts.webhook.test/v1beta1", kind="Raft", storage=False)
class RaftV1Beta1(Resource[RaftSpec, None]):
    """Its metadata is converted by each test."""

    def to_hub(self) -> Raft:
        return Raft(metadata=self.metadata, spec=self.spec)

    @classmethod
    def from_hub(cls, hub: Raft) -> Self:
        return cls(metadata=hub.metadata, spec=hub.spec)


def raft(metadata: JSONObject) -> JSONObject:
    return {"apiVersion": "rafts.webhook.test/v1", "kind": "Raft", "metadata": metadata, "spec": {"logs": 3}}


def test_a_converter_may_change_labels_and_annotations(monkeypatch: pytest.MonkeyPatch) -> None:
    def renamed(hub: Raft) -> RaftV1Beta1:
        hub.metadata.labels["old"] = hub.metadata.labels.pop("new")
        hub.metadata.annotations = {}
        return RaftV1Beta1(metadata=hub.metadata, spec=hub.spec)

    monkeypatch.setattr(RaftV1Beta1, "from_hub", classmethod(lambda cls, hub: renamed(hub)))
    metadata: JSONObject = {**METADATA, "labels": {"new": "x"}}
    made = converts(Raft, RaftV1Beta1).convert(raft(metadata), "rafts.webhook.test/v1beta1")
    expected = {**METADATA, "labels": {"old": "x"}}
    del expected["annotations"]
    assert made["metadata"] == expected


@pytest.mark.parametrize("metadata", [ObjectMeta(name="other"), ObjectMeta(labels={"a": "b"})])
def test_a_converter_that_changes_other_metadata_is_named(
    metadata: ObjectMeta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        RaftV1Beta1, "from_hub", classmethod(lambda cls, hub: RaftV1Beta1(metadata=metadata, spec=hub.spec))
    )
    with pytest.raises(ConversionError, match=r"Raft sea/ship: RaftV1Beta1.from_hub returned .* another metadata.name"):
        converts(Raft, RaftV1Beta1).convert(raft(METADATA), "rafts.webhook.test/v1beta1")


def test_a_converter_that_returns_something_else_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RaftV1Beta1, "from_hub", classmethod(lambda cls, hub: None))
    with pytest.raises(ConversionError, match="from_hub returned None: expected an object of RaftV1Beta1"):
        converts(Raft, RaftV1Beta1).convert(raft(METADATA), "rafts.webhook.test/v1beta1")


@resource(f"{GROUP}/v2", kind="Boat")
class BoatV2(Resource[BoatSpec, None]):
    """Stored, too."""

    def to_hub(self) -> Boat:
        raise NotImplementedError

    @classmethod
    def from_hub(cls, hub: Boat) -> Self:
        raise NotImplementedError


@resource(f"{GROUP}/v2", kind="Boat", storage=False)
class Mute(Resource[BoatSpec, None]):
    """Has no methods."""


@resource(f"{GROUP}/v2", kind="Boat", storage=False)
class Unbound(Resource[BoatSpec, None]):
    """Its from_hub is no classmethod."""

    def to_hub(self) -> Boat:
        raise NotImplementedError

    def from_hub(self, hub: Boat) -> Self:
        raise NotImplementedError


@resource(f"{GROUP}/v2", kind="Boat", storage=False)
class Waiting(Resource[BoatSpec, None]):
    """Its from_hub is a coroutine function."""

    def to_hub(self) -> Boat:
        raise NotImplementedError

    @classmethod
    async def from_hub(cls, hub: Boat) -> Self:
        raise NotImplementedError


@resource(f"{GROUP}/v1beta1", kind="Boat", storage=False)
class Twin(BoatV1Beta1):
    """Of a version that there is already."""


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ((Boat,), "give its other versions, too"),
        (
            (Boat, RaftV1Beta1),
            'its group is "rafts.webhook.test", and that of the hub "boats.webhook.test"; write',
        ),
        ((Boat, Boat(spec=BoatSpec(owner="ann"))), "expected the classes of the versions of a kind"),
        (("Boat", BoatV1Beta1), "expected the classes of the versions of a kind, the hub first"),
        ((BoatV1Beta1, Boat), "BoatV1Beta1 cannot be the hub: objects are not stored in its version"),
        ((BoatV2, BoatV1Beta1), "BoatV2 has to_hub or from_hub, as a spoke has, and cannot be the hub"),
        ((Boat, BoatV2), "BoatV2 and Boat both have storage=True"),
        ((Boat, Mute), "Mute has no method to_hub"),
        ((Boat, Unbound), "Unbound has no classmethod from_hub"),
        ((Boat, Waiting), "Waiting.from_hub is an async def"),
        ((Boat, BoatV1Beta1, Twin), "BoatV1Beta1 and Twin are both of boats.webhook.test/v1beta1"),
    ],
)
def test_mistakes_in_a_declaration_are_refused(types: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        converts(*types)


def test_nothing_is_logged_for_an_ordinary_conversion(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        to("v1", to("v1beta1", boat("v1", FULL)))
    assert caplog.records == []


def test_the_order_of_fields_makes_no_other_annotation() -> None:
    one, other = [
        to("v1beta1", boat("v1", {**FULL, **more}))["metadata"]["annotations"][ANNOTATION]
        for more in ({"sail": 1, "anchor": 2}, {"anchor": 2, "sail": 1})
    ]
    assert one == other
