from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from kubewright import Meta, Model, Quantity, Resource, resource
from kubewright.api.codec import decode, encode
from kubewright.api.core.v1 import PodTemplateSpec
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.webhook.partial_objects import completed


class KiteSpec(Model):
    template: PodTemplateSpec
    weight: Quantity
    since: datetime
    extra: dict[str, JSONValue]
    colour: Literal["red", "blue"]
    owner: str | None
    tails: Annotated[int, Meta(ge=1)]
    name: Annotated[str, Meta(min_length=1)]
    lines: Annotated[list[str], Meta(min_length=1)]
    flies: bool
    note: str = "default"


@resource("kites.webhook.test/v1")
class Kite(Resource[KiteSpec, None]):
    """Flies, or not."""


def test_every_required_field_gets_a_value_that_its_type_takes() -> None:
    empty: JSONObject = {"apiVersion": "kites.webhook.test/v1", "kind": "Kite", "metadata": {"name": "a"}}
    kite = decode(Kite, encode(completed(empty, Kite)))
    assert (kite.spec.owner, kite.spec.tails, kite.spec.lines, kite.spec.flies) == (None, 1, [""], False)
    assert kite.spec.note == "default"


def test_what_is_there_stays_also_within_lists_and_maps() -> None:
    given: JSONObject = {"containers": [{"image": "nginx", "later": 1}], "nodeSelector": {"a": "b"}}
    made = completed({"metadata": {}, "spec": {"template": {"spec": given}, "lines": ["x"], "unknown": [1]}}, Kite)
    assert isinstance(made, dict)
    spec = made["spec"]
    assert isinstance(spec, dict)
    assert (spec["lines"], spec["unknown"], "note" in spec) == (["x"], [1], False)
    expected = {"containers": [{"image": "nginx", "later": 1, "name": ""}], "nodeSelector": {"a": "b"}}
    assert spec["template"] == {"spec": expected}
