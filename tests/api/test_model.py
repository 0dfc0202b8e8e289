from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from msgspec import UNSET, Meta, UnsetType, field

from kubewright.api.codec import decode_model, encode
from kubewright.api.errors import DecodeError
from kubewright.api.markers import Rule
from kubewright.api.model import BuiltIn, Model
from kubewright.api.resources import Object


class Strategy(Model):
    kind: str = "Rolling"


class Spec(Model):
    image: Annotated[str, Meta(min_length=1)]
    replicas: int = 3
    paused: bool = False
    tags: list[str] = []
    limits: dict[str, str] = {"cpu": "1"}
    strategy: Strategy = Strategy()
    node: str | None = None
    deadline: int | UnsetType | None = UNSET
    notes: list[str] = field(default_factory=list)
    from_: str | None = None
    cluster_ip: str | None = field(default=None, name="clusterIP")


class Port(BuiltIn):
    number: int
    name: str = ""
    weight: int = 0
    aliases: list[str] = []
    labels: dict[str, str] = {}


def sent(model: Model) -> object:
    return msgspec.json.decode(encode(model))


def test_a_field_with_a_default_other_than_none_is_always_sent() -> None:
    assert sent(Spec(image="nginx")) == {
        "image": "nginx",
        "replicas": 3,
        "paused": False,
        "tags": [],
        "limits": {"cpu": "1"},
        "strategy": {"kind": "Rolling"},
    }


class Chapter(Model):
    title: str = "Untitled"
    next: "Chapter | None" = None
    notes: "list[Note]" = []


class Note(Model):
    text: str


def test_a_default_is_always_sent_beside_types_that_are_defined_later() -> None:
    assert sent(Chapter(next=Chapter())) == {
        "title": "Untitled",
        "notes": [],
        "next": {"title": "Untitled", "notes": []},
    }


def test_zero_is_sent_and_none_is_absent() -> None:
    encoded = sent(Spec(image="nginx", replicas=0, node=None, from_="a", cluster_ip="10.0.0.1"))
    assert isinstance(encoded, dict)
    assert encoded["replicas"] == 0
    assert "node" not in encoded
    assert (encoded["from"], encoded["clusterIP"]) == ("a", "10.0.0.1")


def test_null_and_absent_are_distinguished_where_the_type_does() -> None:
    assert decode_model(Spec, b'{"image":"a"}').deadline is UNSET
    assert decode_model(Spec, b'{"image":"a","deadline":null}').deadline is None
    assert b'"deadline":null' in encode(Spec(image="a", deadline=None))
    assert b"deadline" not in encode(Spec(image="a"))


def test_no_two_instances_share_a_default() -> None:
    one, other = Spec(image="a"), Spec(image="b")
    one.tags.append("x")
    one.limits["memory"] = "1Gi"
    one.strategy.kind = "Recreate"
    assert (other.tags, other.limits, other.strategy) == ([], {"cpu": "1"}, Strategy())


def test_decoding_fills_in_the_defaults() -> None:
    assert decode_model(Spec, b'{"image":"a"}') == Spec(image="a")


def test_zero_values_of_kubernetes_own_structures_are_absent() -> None:
    assert sent(Port(number=0)) == {"number": 0}
    assert sent(Port(number=1, name="", weight=0, aliases=[], labels={})) == {"number": 1}
    assert sent(Port(number=1, name="a", weight=2, aliases=["b"])) == {
        "number": 1,
        "name": "a",
        "weight": 2,
        "aliases": ["b"],
    }


def test_a_subclass_inherits_what_zero_means() -> None:
    class Named(Port):
        title: str = ""

    assert sent(Named(number=1)) == {"number": 1}


def test_an_empty_list_from_an_explicit_factory_is_absent() -> None:
    assert b"notes" not in encode(Spec(image="a"))
    assert b'"notes":["x"]' in encode(Spec(image="a", notes=["x"]))


def test_a_value_out_of_bounds_is_named_with_its_path() -> None:
    with pytest.raises(DecodeError, match=r"not a valid Spec: Expected `str` of length >= 1 - at `\$\.image`"):
        decode_model(Spec, b'{"image":""}')


def test_models_are_made_with_keywords_only() -> None:
    with pytest.raises(TypeError):
        Port(80)  # type: ignore[call-arg]


class Credentials(Model, redacted=["password"]):
    user: str = ""
    password: str = ""


class Login(Model):
    credentials: Credentials


def test_a_redacted_field_is_not_shown_wherever_the_structure_is() -> None:
    login = Login(credentials=Credentials(user="bob", password="hunter2"))

    assert repr(login) == "Login(credentials=Credentials(user='bob', password='<redacted>'))"
    assert "hunter2" not in str([login.credentials.__rich_repr__()])
    assert repr(Credentials(user="bob")) == "Credentials(user='bob', password='')"
    assert sent(login) == {"credentials": {"user": "bob", "password": "hunter2"}}


# --- mistakes


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"image": "a", "replica": 3}, "Spec has no field 'replica': did you mean 'replicas'?"),
        (
            {"image": "a", "clusterIP": ""},
            "Spec has no field 'clusterIP': Python names are in snake case, write 'cluster_ip'",
        ),
        (
            {"image": "a", "zzz": 1},
            "Spec has no field 'zzz' (it has image, replicas, paused, tags, limits, ",
        ),
        ({"replicas": 3}, "Spec needs the field 'image': write Spec(image=...)"),
    ],
)
def test_wrong_arguments_of_a_model_are_named_with_its_class_and_the_fix(values: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        Spec(**values)
    assert str(caught.value).startswith(message)


def test_an_attribute_that_is_no_field_is_refused_with_the_field_that_was_meant() -> None:
    spec: Any = Spec(image="a")
    with pytest.raises(AttributeError, match=r"^Spec has no field 'clusterIP': Python names .* write 'cluster_ip'$"):
        spec.clusterIP = "1.2.3.4"
    with pytest.raises(AttributeError, match=r"^Spec has no field 'replicsa': did you mean 'replicas'\?$"):
        spec.replicsa  # noqa: B018  # reading it is what fails


class Measured(Model):
    size: int = 1

    @property
    def area(self) -> int:
        return self.size * self.hieght

    @area.setter
    def area(self, area: int) -> None:
        self.hieght = area


def test_an_attribute_error_within_a_property_is_not_taken_for_a_missing_field() -> None:
    measured = Measured()
    with pytest.raises(AttributeError, match=r"^Measured has no field 'hieght'"):
        measured.area  # noqa: B018  # reading it is what fails
    with pytest.raises(AttributeError, match=r"^Measured has no field 'hieght'"):
        measured.area = 3
    assert not hasattr(measured, "area")


def test_an_error_of_a_check_of_ones_own_keeps_its_cause() -> None:
    class Checked(Model):
        size: str

        def __post_init__(self) -> None:
            try:
                int(self.size)
            except ValueError as error:
                raise TypeError("size is no number") from error

    with pytest.raises(TypeError, match=r"^size is no number$") as caught:
        Checked(size="x")
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_private_field_is_refused_since_all_fields_are_sent() -> None:
    with pytest.raises(TypeError, match=r"^Hidden\._cache: the fields of a model are sent to the API server"):

        class Hidden(Model):
            _cache: int = 0

    class Shown(Model):
        _known: ClassVar[int] = 0

    assert sent(Shown()) == {}
    assert Shown._known == 0


def test_a_field_without_a_type_is_refused_since_it_would_be_none() -> None:
    with pytest.raises(TypeError, match=r"^Untyped\.replicas has no type and so is no field: write replicas: int = 3"):

        class Untyped(Model):
            replicas = 3


def test_methods_properties_and_classes_are_no_fields() -> None:
    class Full(Model):
        name: str = "a"
        limit: ClassVar[int] = 3

        class Inner(Model):
            pass

        @property
        def upper(self) -> str:
            return self.name.upper()

        @staticmethod
        def made() -> str:
            return ""

        def method(self) -> None: ...

    assert sent(Full()) == {"name": "a"}


def test_a_tag_is_sent_and_decides_which_class_of_a_union_is_decoded() -> None:
    class Source(Model, tag_field="kind"):
        name: str = ""

    class File(Source, tag="File"):
        path: str

    class Url(Source):
        url: str

    class Copy(Model):
        source: File | Url | None = None

    assert sent(Copy(source=File(path="a", name="b"))) == {"source": {"kind": "File", "name": "b", "path": "a"}}
    assert decode_model(Copy, b'{"source":{"url":"a","kind":"Url"}}').source == Url(url="a")


@pytest.mark.parametrize("options", [{"tag": ""}, {"tag": 1}, {"tag": True}, {"tag": "it's"}, {"tag_field": "my_type"}])
def test_a_tag_that_is_none_is_refused_with_an_example(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r'^Tagged: expected tag(_field)?="(File|type)", '):

        class Tagged(Model, **options):
            pass


def test_a_tag_that_is_a_field_as_well_is_refused() -> None:
    with pytest.raises(TypeError, match=r"^File: its tag is sent as a field, and cannot be a field of the class as w"):

        class File(Model, tag="File"):
            type: Literal["File"]


def test_a_kind_has_no_tag() -> None:
    with pytest.raises(TypeError, match=r"^Thing: a kind cannot have a tag: its apiVersion and kind say what it is$"):

        class Thing(Object, tag="Thing"):
            pass


@pytest.mark.parametrize("rules", ["self.a > 0", ["self.a > 0"], Rule("true"), [Rule(" ")]])
def test_rules_that_are_none_are_refused_with_an_example(rules: Any) -> None:
    with pytest.raises(TypeError, match=r'^Ruled: expected rules=\[Rule\("self.min <= self.max", message="..."\)\], f'):

        class Ruled(Model, rules=rules):
            pass
