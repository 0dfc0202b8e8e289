"""Rules of fields, structures and kinds, and what the server would refuse of them."""

from typing import Annotated, Any, cast

import pytest
from msgspec import field

from kubewright.api.markers import (
    AtLeastOneOf,
    AtMostOneOf,
    ExactlyOneOf,
    FieldUnion,
    Immutable,
    JSONValue,
    ListMap,
    Rule,
)
from kubewright.api.model import Model, ModelMeta
from kubewright.api.resources import Resource, resource
from kubewright.manifest.crd import crd_of
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.schema import schema_of

UNCHANGED: JSONValue = {"rule": "self == oldSelf", "message": "field is immutable"}
ORDER = Rule("self.minSize <= self.maxSize", message="minSize must not exceed maxSize")
ORDERED: JSONValue = {"rule": "self.minSize <= self.maxSize", "message": "minSize must not exceed maxSize"}


class Range(Model, rules=[ORDER]):
    min_size: int = 1
    max_size: int = 2


def rules_of(cls: type[Model], *path: str) -> JSONValue:
    schema = cast("dict[str, Any]", schema_of(cls))
    for name in path:
        schema = schema["items"] if name == "*" else schema["properties"][name]
    return cast(JSONValue, schema.get("x-kubernetes-validations"))


def test_the_rules_of_a_structure_are_rendered_where_it_is_used() -> None:
    class Spec(Model):
        range: Range
        more: list[Range] = []

    assert rules_of(Range) == rules_of(Spec, "range") == rules_of(Spec, "more", "*") == [ORDERED]


def test_a_derived_structure_has_the_rules_of_its_bases_first() -> None:
    class Short(Range, rules=[Rule("self.maxSize < 10"), ORDER]):
        pass

    assert rules_of(Short) == [ORDERED, {"rule": "self.maxSize < 10"}]


def test_a_rule_of_a_field_may_have_all_that_kubernetes_knows() -> None:
    class Spec(Model):
        name: Annotated[
            str,
            Rule(
                "!oldSelf.hasValue() || self == oldSelf.value()",
                message_expression="'was ' + oldSelf.value()",
                reason="FieldValueForbidden",
                optional_old_self=True,
            ),
            Rule("self != 'admin'", message="reserved"),
        ]

    assert rules_of(Spec, "name") == [
        {
            "rule": "!oldSelf.hasValue() || self == oldSelf.value()",
            "messageExpression": "'was ' + oldSelf.value()",
            "reason": "FieldValueForbidden",
            "optionalOldSelf": True,
        },
        {"rule": "self != 'admin'", "message": "reserved"},
    ]


def test_the_rules_of_a_kind_are_about_the_whole_object() -> None:
    @resource("example.com/v1", rules=[Rule("self.spec.maxSize < 9", field_path=".spec.maxSize")])
    class Example(Resource[Range, None]):
        pass

    (version,) = cast("dict[str, Any]", crd_of(Example))["spec"]["versions"]
    assert version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] == [
        {"rule": "self.spec.maxSize < 9", "fieldPath": ".spec.maxSize"}
    ]


def test_a_required_immutable_field_needs_one_rule() -> None:
    class Spec(Model):
        zone: Annotated[str, Immutable()]
        tier: Annotated[str, Immutable()] = "standard"

    assert rules_of(Spec, "zone") == rules_of(Spec, "tier") == [UNCHANGED]
    assert rules_of(Spec) is None


def test_an_immutable_field_that_is_optional_cannot_be_removed_either() -> None:
    class Spec(Model):
        storage_class: Annotated[str | None, Immutable()] = None
        namespace: Annotated[str, Immutable()] | None = None
        odd: Annotated[Range | None, Immutable()] = field(default=None, name="a-b__c.d/e")

    assert rules_of(Spec, "storageClass") == rules_of(Spec, "namespace") == [UNCHANGED]
    assert rules_of(Spec, "a-b__c.d/e") == [ORDERED, UNCHANGED]
    assert rules_of(Spec) == [
        {
            "rule": "!has(oldSelf.storageClass) || has(self.storageClass)",
            "message": "storageClass is immutable once it is set",
        },
        {
            "rule": "!has(oldSelf.__namespace__) || has(self.__namespace__)",
            "message": "namespace is immutable once it is set",
        },
        {
            "rule": "!has(oldSelf.a__dash__b__underscores__c__dot__d__slash__e) || "
            "has(self.a__dash__b__underscores__c__dot__d__slash__e)",
            "message": "a-b__c.d/e is immutable once it is set",
        },
    ]


def test_a_rule_with_the_python_name_of_a_field_is_refused_with_its_json_name() -> None:
    class Wrong(Range, rules=[Rule("size(self.name) > 0 && self.min_size > 0")]):
        pass

    with pytest.raises(ManifestError) as caught:
        schema_of(Wrong)
    assert str(caught.value) == (
        'Wrong: the rule "size(self.name) > 0 && self.min_size > 0" names the field "min_size" as Python does: '
        'write "minSize", as in JSON'
    )

    @resource("example.com/v1", rules=[Rule("oldSelf.spec.max_size == self.spec.maxSize")])
    class Example(Resource[Range, None]):
        pass

    with pytest.raises(ManifestError, match=r'^Example: .* write "maxSize", as in JSON$'):
        crd_of(Example)


def test_the_field_that_a_rule_blames_is_one_of_the_structure() -> None:
    class Good(Range, rules=[Rule("true", field_path="maxSize")]):
        pass

    class Wrong(Range, rules=[Rule("true", field_path=".max_size")]):
        pass

    assert rules_of(Good) == [ORDERED, {"rule": "true", "fieldPath": ".maxSize"}]
    with pytest.raises(ManifestError) as caught:
        schema_of(Wrong)
    assert str(caught.value) == (
        'Wrong: field_path of the rule "true": ".max_size" leads nowhere: the object has no field "max_size": '
        'write "maxSize", as in JSON'
    )


def test_other_names_in_a_rule_are_left_to_the_server() -> None:
    class Spec(Model, rules=[Rule("self.labels.exists(key, key == 'my_key') && self.labels.my_key != ''")]):
        labels: dict[str, str] = {}

    assert rules_of(Spec) is not None


def test_a_rule_about_changes_needs_a_list_whose_items_can_be_identified() -> None:
    class Volume(Model):
        name: str
        size: Annotated[int, Immutable()]

    class Identified(Model):
        volumes: Annotated[list[Volume], ListMap("name")] = []
        by_name: dict[str, Volume] = {}

    class Mixed(Model):
        inner: Identified
        volumes: list[dict[str, Volume]] = []

    assert rules_of(Identified, "volumes", "*", "size") == [UNCHANGED]
    with pytest.raises(ManifestError) as caught:
        schema_of(Mixed)
    assert str(caught.value) == (
        "Mixed.volumes: the rule 'self == oldSelf' is about changes, but the server cannot identify the items of this "
        'list: make it Annotated[list[...], ListMap("name")] with the fields that identify an item'
    )


class Source(Model):
    file: str | None = None
    config_map: str | None = None
    namespace: str | None = None
    name: str
    size: int = 1
    free: JSONValue = None


@pytest.mark.parametrize(
    ("union", "rule", "message"),
    [
        (
            ExactlyOneOf("file", "configMap"),
            "(has(self.file) ? 1 : 0) + (has(self.configMap) ? 1 : 0) == 1",
            "exactly one of file, configMap must be set",
        ),
        (
            AtMostOneOf("file", "namespace"),
            "(has(self.file) ? 1 : 0) + (has(self.__namespace__) ? 1 : 0) <= 1",
            "at most one of file, namespace may be set",
        ),
        (
            AtLeastOneOf("file", "configMap"),
            "has(self.file) || has(self.configMap)",
            "at least one of file, configMap must be set",
        ),
    ],
    ids=repr,
)
def test_a_union_of_fields_is_a_rule_of_the_structure_or_of_one_field_that_holds_it(
    union: FieldUnion, rule: str, message: str
) -> None:
    class Ruled(Source, rules=[union, Rule("self.size > 0")]):
        pass

    class Holder(Model):
        source: Annotated[Source, union]

    rendered: JSONValue = {"rule": rule, "message": message}
    assert rules_of(Ruled) == [rendered, {"rule": "self.size > 0"}]
    assert rules_of(Holder, "source") == [rendered]


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        (
            ExactlyOneOf("file", "url"),
            "Ruled: ExactlyOneOf('file', 'url'): there is no field \"url\" (JSON names: file, configMap, namespace,",
        ),
        (
            AtMostOneOf("file", "config_map"),
            "Ruled: AtMostOneOf('file', 'config_map') names a field as Python does: write \"configMap\"",
        ),
        (
            ExactlyOneOf("file", "free"),
            'names the field "free", but rules do not see JSONValue: use dict[str, JSONValue]',
        ),
        (Rule("!has(self.free)"), 'the rule "!has(self.free)" names the field "free", but rules do not see JSONValue'),
        (ExactlyOneOf("file", "name"), '"name" is always set, because it is required or has a default'),
        (AtLeastOneOf("file", "size"), '"size" is always set, because it is required or has a default'),
        (
            Rule("self.size > 0", reason="Invalid"),
            'Ruled: the reason "Invalid" of the rule "self.size > 0" is none of FieldValueDuplicate, ',
        ),
        (Rule("self.size > 0", message="a\nb"), 'Ruled: the message of the rule "self.size > 0" must be one line'),
        (
            Rule("self.size > 0", optional_old_self=True),
            'Ruled: optional_old_self is for rules about changes, but "self.size > 0" does not use oldSelf',
        ),
    ],
    ids=repr,
)
def test_a_union_or_an_option_that_the_server_would_refuse_is_an_error(rule: Rule | FieldUnion, complaint: str) -> None:
    class Ruled(Source, rules=[rule]):
        pass

    with pytest.raises(ManifestError) as caught:
        schema_of(Ruled)
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[JSONValue, Immutable()],
        Annotated[list[JSONValue], Rule("self.size() < 2")],
        Annotated[dict[str, list[JSONValue]], Rule("self.size() < 2")],
    ],
    ids=str,
)
def test_a_rule_about_what_rules_do_not_see_is_an_error(annotation: object) -> None:
    namespace: dict[str, object] = {"__annotations__": {"value": annotation}, "__module__": __name__}
    with pytest.raises(
        ManifestError, match=r"^Blind\.value: rules, Immutable\(\) included, do not see JSONValue: use di"
    ):
        schema_of(cast("type[Model]", ModelMeta("Blind", (Model,), namespace)))


@pytest.mark.parametrize("union", [ExactlyOneOf("file"), AtMostOneOf(), AtLeastOneOf("file", "file")], ids=repr)
def test_a_union_of_fewer_than_two_fields_is_an_error_at_its_class(union: FieldUnion) -> None:
    with pytest.raises(TypeError, match=r"^Ruled: .*OneOf\(.*\) needs the names of at least two different fields$"):

        class Ruled(Source, rules=[union]):
            pass


def test_a_message_may_end_with_a_line_break_as_a_block_of_yaml_does() -> None:
    class Ruled(Model, rules=[Rule("self.size > 0", message="must be positive\n")]):
        size: int = 1

    assert rules_of(Ruled) == [{"rule": "self.size > 0", "message": "must be positive\n"}]


def test_unions_are_equal_when_they_say_the_same() -> None:
    assert ExactlyOneOf("a", "b") == ExactlyOneOf("a", "b") != AtMostOneOf("a", "b")
    assert len({ExactlyOneOf("a", "b"), ExactlyOneOf("a", "b")}) == 1
