from __future__ import annotations

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apiextensions.internal_form import shown_schema, shown_version
from kubewright.controlplane.embedded.apimachinery.document import items, mapping


def test_a_schema_is_shown_with_every_field_of_the_internal_type() -> None:
    shown = shown_schema({"type": "object", "anyOf": [{"required": ["a"]}]})

    assert list(shown)[:9] == ["ID", "Schema", "Ref", "Description", "Type", "Nullable", "Format", "Title", "Default"]
    assert list(shown)[-3:] == ["XListType", "XMapType", "XValidations"]
    assert (shown["Type"], shown["Nullable"], shown["Maximum"], shown["Pattern"]) == ("object", False, None, "")
    inner = mapping(items(shown, "AnyOf")[0])
    assert (inner["Required"], list(inner)) == (["a"], list(shown))


def test_nested_schemas_are_wrapped_as_the_internal_type_wraps_them() -> None:
    rule: JSONObject = {"rule": "self.x"}
    text: JSONObject = {"type": "string"}
    shown = shown_schema(
        {
            "items": text,
            "additionalProperties": text,
            "additionalItems": False,
            "not": text,
            "properties": {"b": text, "a": text},
            "x-kubernetes-validations": [rule],
        }
    )

    assert shown["Items"] == {"Schema": shown_schema(text), "JSONSchemas": None}
    assert shown["AdditionalProperties"] == {"Allows": True, "Schema": shown_schema(text)}
    assert shown["AdditionalItems"] == {"Allows": False, "Schema": None}
    assert shown["Not"] == shown_schema(text)
    assert list(mapping(shown, "Properties")) == ["a", "b"]
    assert shown["XValidations"] == [
        {
            "Rule": "self.x",
            "Message": "",
            "MessageExpression": "",
            "Reason": None,
            "FieldPath": "",
            "OptionalOldSelf": None,
        }
    ]


def test_a_version_is_shown_with_what_it_alone_has() -> None:
    shown = shown_version(
        {
            "name": "v1",
            "served": True,
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.n"}},
            "additionalPrinterColumns": [{"name": "a", "type": "string", "jsonPath": ".a"}],
            "selectableFields": [{"jsonPath": ".spec.s"}],
        }
    )

    assert shown == {
        "Name": "v1",
        "Served": True,
        "Storage": False,
        "Deprecated": False,
        "DeprecationWarning": None,
        "Schema": None,
        "Subresources": {
            "Status": {},
            "Scale": {"SpecReplicasPath": ".spec.n", "StatusReplicasPath": "", "LabelSelectorPath": None},
        },
        "AdditionalPrinterColumns": [
            {"Name": "a", "Type": "string", "Format": "", "Description": "", "Priority": 0, "JSONPath": ".a"}
        ],
        "SelectableFields": [{"JSONPath": ".spec.s"}],
    }
