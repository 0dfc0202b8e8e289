import copy
from typing import Annotated, Any

import pytest
from msgspec import Meta

from kubewright.api.authentication.v1 import TokenRequest, TokenRequestStatus, TokenReview, TokenReviewSpec
from kubewright.api.codec import decode, encode, origin
from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.api.dynamic import Dynamic
from kubewright.api.kinds import GroupVersionKind, ObjectKey
from kubewright.api.meta import Condition, ObjectMeta
from kubewright.api.model import Model
from kubewright.api.resources import Column, Object, Resource, Scale, resource, resource_info


class GardenSpec(Model):
    beds: Annotated[int, Meta(ge=1)] = 3


class GardenStatus(Model):
    planted: int = 0
    conditions: list[Condition] = []


@resource("green.example.com/v1", short_names=["gd"], scale=Scale(".spec.beds", ".status.planted"))
class Garden(Resource[GardenSpec, GardenStatus]):
    """Grows things."""


@resource("green.example.com/v1", kind="Hedge", plural="hedges", namespaced=False)
class GreenHedge(Resource[GardenSpec, None]):
    """Has no status."""


def test_the_decorator_names_the_kind() -> None:
    info = resource_info(Garden)
    assert info.gvk == GroupVersionKind("green.example.com", "v1", "Garden")
    assert (info.plural, info.singular, info.namespaced) == ("gardens", "garden", True)
    assert info.subresources == {"status", "scale"}
    assert info.has_status


def test_a_kind_without_a_status_type_has_no_status_subresource() -> None:
    info = resource_info(GreenHedge)
    assert (info.gvk.kind, info.plural, info.namespaced, info.subresources) == ("Hedge", "hedges", False, frozenset())
    assert encode(GreenHedge(spec=GardenSpec())) == (
        b'{"apiVersion":"green.example.com/v1","kind":"Hedge","metadata":{},"spec":{"beds":3}}'
    )


def test_an_object_knows_its_api_version_and_kind() -> None:
    garden = Garden(metadata=ObjectMeta(name="rose"), spec=GardenSpec())
    assert (garden.api_version, garden.kind) == ("green.example.com/v1", "Garden")
    assert encode(garden).startswith(b'{"apiVersion":"green.example.com/v1","kind":"Garden","metadata":{"name":"rose"}')


def test_a_fresh_object_has_a_fresh_status() -> None:
    one, other = Garden(spec=GardenSpec()), Garden(spec=GardenSpec())
    one.status.planted = 4
    assert other.status.planted == 0


def test_two_kinds_do_not_share_their_names() -> None:
    @resource("other.example.com/v2")
    class Lawn(Resource[GardenSpec, GardenStatus]):
        pass

    assert Lawn(spec=GardenSpec()).kind == "Lawn"
    assert Garden(spec=GardenSpec()).kind == "Garden"


def test_the_key_is_namespace_and_name() -> None:
    assert Garden(metadata=ObjectMeta(name="a", namespace="b"), spec=GardenSpec()).key == ObjectKey("b", "a")
    assert str(ObjectKey("b", "a")) == "b/a"
    assert str(ObjectKey("", "a")) == "a"


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_keeps_the_json_it_was_read_from(copied: object) -> None:
    assert callable(copied)
    raw = b'{"metadata":{"name":"a"},"spec":{"beds":1,"soil":"clay"}}'
    garden = decode(Garden, raw)
    twin = copied(garden)
    assert twin == garden
    assert origin(twin) == raw


def test_a_deep_copy_shares_nothing_with_the_original() -> None:
    garden = Garden(metadata=ObjectMeta(labels={"a": "b"}), spec=GardenSpec())
    twin = copy.deepcopy(garden)
    twin.metadata.labels["a"] = "c"
    twin.spec.beds = 9
    assert (garden.metadata.labels, garden.spec.beds) == ({"a": "b"}, 3)


def test_a_class_without_the_decorator_is_no_kind() -> None:
    class Shed(Resource[GardenSpec, GardenStatus]):
        pass

    with pytest.raises(TypeError, match=r'Shed is not a kind yet: decorate it with @resource\("group/version"\)'):
        resource_info(Shed)


@pytest.mark.parametrize(
    ("api_version", "plural", "complaint"),
    [
        ("Green.example.com/v1", None, '"Green.example.com" is not an API group'),
        ("green.example.com/1.0", None, '"1.0" is not a version'),
        ("green.example.com/", None, "does not name a kind"),
        ("a/b/v1", None, "does not name a kind"),
        ("green.example.com/v1", "Gardens", '"Gardens" is not a plural'),
    ],
)
def test_names_that_no_server_would_accept_are_refused_at_once(
    api_version: str, plural: str | None, complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):

        @resource(api_version, plural=plural)
        class Garden(Resource[GardenSpec, GardenStatus]):
            pass


def test_a_spec_that_is_no_type_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Broken: the spec type of Resource\[...\] must be a class that derives"):

        class Broken(Resource[list[int], GardenStatus]):
            pass


def test_kinds_without_spec_derive_from_object() -> None:
    @resource("green.example.com/v1", columns=[Column("Color", ".color")])
    class Seed(Object):
        color: str = "brown"

    assert encode(Seed()) == (b'{"apiVersion":"green.example.com/v1","kind":"Seed","metadata":{},"color":"brown"}')


def test_fields_beside_spec_and_status_are_fields_too() -> None:
    """Python 3.14 keeps the annotations of a class as a function, which hid these."""

    @resource("green.example.com/v1")
    class Orchard(Resource[GardenSpec, GardenStatus]):
        rows: int = 4
        trees: list[str] = []

    orchard = Orchard(spec=GardenSpec(), rows=7)
    assert decode(Orchard, encode(orchard)).rows == 7
    assert b'"trees":[]' in encode(orchard)


def test_an_object_names_itself_as_the_controlling_owner_of_another() -> None:
    owner = ConfigMap(metadata=ObjectMeta(name="a", namespace="ns", uid="u1"))
    reference = owner.as_owner()
    assert (reference.api_version, reference.kind, reference.name, reference.uid) == ("v1", "ConfigMap", "a", "u1")
    assert (reference.controller, reference.block_owner_deletion) == (True, True)
    plain = owner.as_owner(controller=False)
    assert (plain.controller, plain.block_owner_deletion) == (None, None)


def test_an_object_that_the_server_does_not_have_yet_owns_nothing() -> None:
    with pytest.raises(ValueError, match="ConfigMap ns/a has no uid yet"):
        ConfigMap(metadata=ObjectMeta(name="a", namespace="ns")).as_owner()


@pytest.mark.parametrize(
    "secret",
    [
        Secret(metadata=ObjectMeta(name="a", namespace="ns"), string_data={"password": "hunter2"}),
        Dynamic.of("v1", "Secret")(metadata=ObjectMeta(name="a", namespace="ns"), content={"data": {"p": "hunter2"}}),
        TokenRequest(metadata=ObjectMeta(name="a", namespace="ns"), status=TokenRequestStatus(token="hunter2")),
        TokenReview(metadata=ObjectMeta(name="a", namespace="ns"), spec=TokenReviewSpec(token="hunter2")),
    ],
)
def test_the_repr_of_a_secret_is_redacted(secret: Object) -> None:
    assert repr(secret) == str(secret) == f"<{secret.kind} ns/a>"
    assert secret.__rich_repr__() == [("key", ("ns", "a"))]
    assert "hunter2" in repr(ConfigMap(data={"a": "hunter2"}))


def test_a_kind_that_derives_from_another_has_its_status() -> None:
    @resource("example.com/v1beta1", kind="Derived")
    class Older(Resource[GardenSpec, GardenStatus]):
        pass

    @resource("example.com/v1", kind="Derived")
    class Newer(Older):
        note: str = ""

    @resource("example.com/v2", kind="Derived")
    class WithoutStatus(Resource[GardenSpec, None]):
        pass

    @resource("example.com/v3", kind="Derived")
    class StillWithout(WithoutStatus):
        pass

    assert [resource_info(kind).has_status for kind in (Older, Newer, WithoutStatus, StillWithout)] == [
        True,
        True,
        False,
        False,
    ]


def test_a_token_is_not_shown_by_the_structure_that_holds_it() -> None:
    request = TokenRequest(metadata=ObjectMeta(name="a"), status=TokenRequestStatus(token="hunter2"))
    review = TokenReview(spec=TokenReviewSpec(token="hunter2"))

    assert "hunter2" not in repr(request.status) + repr(review.spec)
    assert b"hunter2" in encode(request)


# --- mistakes


def test_the_decorator_without_parentheses_is_refused_with_what_it_needs() -> None:
    bare: Any = resource
    with pytest.raises(TypeError) as caught:

        @bare
        class Shed(Resource[GardenSpec, GardenStatus]):
            pass

    assert str(caught.value) == '@resource needs the API group and version of Shed: write @resource("example.com/v1")'


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"short_names": "gd"}, 'short_names is a list: write short_names=["gd"]'),
        ({"categories": "all"}, 'categories is a list: write categories=["all"]'),
        ({"selectable_fields": ".spec.x"}, 'selectable_fields is a list: write selectable_fields=[".spec.x"]'),
        ({"columns": Column("A", ".a")}, 'columns is a list of columns: write columns=[Column("Ready", '),
        ({"columns": [("A", ".a")]}, "not [('A', '.a')]"),
        ({"scale": ".spec.replicas"}, 'write scale=Scale(".spec.replicas", ".status.replicas"), not '),
        ({"rules": "self.x"}, '@resource of Shed: expected rules=[Rule("self.min <= self.max", message="...")]'),
    ],
)
def test_an_option_of_the_wrong_type_is_shown_as_it_is_written(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:

        @resource("green.example.com/v1", **options)
        class Shed(Resource[GardenSpec, GardenStatus]):
            pass

    assert message in str(caught.value)


def test_a_class_that_is_no_object_cannot_become_a_kind() -> None:
    decorate: Any = resource("green.example.com/v1")
    with pytest.raises(TypeError, match=r"^GardenSpec is no object: .* derives from Resource\[Spec, Status\]"):
        decorate(GardenSpec)


def test_a_resource_without_its_types_shows_how_to_write_them() -> None:
    with pytest.raises(TypeError, match=r"^Shed: a Resource needs .* write Resource\[ShedSpec, ShedStatus\], or"):

        class Shed(Resource):  # type: ignore[type-arg]  # what is wrong here
            pass


def test_options_of_a_kind_belong_to_the_decorator() -> None:
    with pytest.raises(TypeError, match=r"^Shed: give rules to the decorator of the class: @resource\(..., rules="):

        class Shed(Resource[GardenSpec, GardenStatus], rules=[]):
            pass


def test_a_dict_instead_of_a_structure_is_refused_with_the_fix() -> None:
    metadata: Any = {"name": "a"}
    with pytest.raises(TypeError, match=r"^ConfigMap: metadata and spec are structures .*ObjectMeta\(name=...\), or"):
        ConfigMap(metadata=metadata)
    assert ConfigMap(data={"a": "b"}).data == {"a": "b"}


def test_an_attribute_that_is_no_field_of_an_object_is_refused() -> None:
    """It would be kept in Python and never be sent."""
    config_map: Any = ConfigMap()
    with pytest.raises(AttributeError, match=r"^ConfigMap has no field 'binaryData': .* write 'binary_data'$"):
        config_map.binaryData = {}
    config_map.data = {"a": "b"}
    assert config_map.data == {"a": "b"}


def test_a_property_of_an_object_is_set_by_its_setter() -> None:
    @resource("green.example.com/v1")
    class Orchard(Resource[GardenSpec, None]):
        @property
        def trees(self) -> int:
            return self.spec.beds * 2

        @trees.setter
        def trees(self, trees: int) -> None:
            self.spec.beds = trees // 2

        @property
        def paths(self) -> int:
            return self.spec.beds + 1

    orchard: Any = Orchard(spec=GardenSpec())
    orchard.trees = 8
    assert (orchard.spec.beds, orchard.__dict__) == (4, {})
    with pytest.raises(AttributeError, match="no setter"):
        orchard.paths = 3
