from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apiextensions.definition import (
    default_definition,
    definition_warnings,
    prepare_create,
    prepare_status,
    prepare_update,
    validate_definition,
    validate_definition_status,
    validate_definition_update,
)
from kubewright.controlplane.embedded.apiextensions.names import accepted
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, items, mapping

Define = Callable[..., JSONObject]
OLD_LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def texts(definition: JSONObject) -> list[str]:
    return [str(error) for error in validate_definition(definition)]


def changed(definition: JSONObject, change: Callable[[JSONObject], object]) -> list[str]:
    """The errors of an update that changes the spec of an established definition."""
    old = accepted(definition, [], "2020-01-01T00:00:00Z")
    new = copied_object(old)
    change(inside(new, "spec"))
    prepare_update(new, old)
    return [str(error) for error in validate_definition_update(new, old)]


def test_names_conversion_and_ports_are_filled_in() -> None:
    webhook: JSONObject = {"clientConfig": {"service": {"name": "a", "namespace": "b"}}}
    definition: JSONObject = {
        "spec": {"names": {"plural": "widgets", "kind": "Widget"}, "preserveUnknownFields": False},
        "status": {"storedVersions": ["made up"]},
    }
    converted: JSONObject = {"spec": {"names": {}, "conversion": {"strategy": "Webhook", "webhook": webhook}}}

    default_definition(definition)
    default_definition(converted)

    assert definition["spec"] == {
        "names": {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"},
        "conversion": {"strategy": "None"},
    }
    assert webhook["clientConfig"] == {"service": {"name": "a", "namespace": "b", "port": 443}}


def test_a_new_definition_has_no_status_but_the_version_it_stores(define: Define) -> None:
    definition = define()
    definition["status"] = {"storedVersions": ["made up"], "conditions": [{"type": "Established", "status": "True"}]}

    prepare_create(definition)

    assert definition["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }


def test_a_good_definition_has_no_errors(define: Define) -> None:
    assert texts(define()) == []


def test_the_errors_of_an_empty_spec_are_those_of_the_real_server() -> None:
    definition: JSONObject = {"metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com"}}
    default_definition(definition)
    prepare_create(definition)

    assert texts(definition) == [
        'metadata.name: Invalid value: "widgets.example.com": must be spec.names.plural+"."+spec.group',
        "spec.scope: Required value",
        "spec.versions: Invalid value: null: must have exactly one version marked as storage version",
        "spec.names.plural: Required value",
        "spec.names.singular: Required value",
        "spec.names.kind: Required value",
        "spec.names.listKind: Required value",
        "status.storedVersions: Invalid value: null: must have at least one stored version",
    ]


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("group", "nodots", 'spec.group: Invalid value: "nodots": should be a domain with at least one dot'),
        ("scope", "foo", 'spec.scope: Unsupported value: "foo": supported values: "Cluster", "Namespaced"'),
        (
            "preserveUnknownFields",
            True,
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
            "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ),
    ],
)
def test_a_wrong_field_of_the_spec_is_reported(define: Define, field: str, value: str, error: str) -> None:
    definition = define()
    inside(definition, "spec")[field] = value

    assert error in texts(definition)


def test_names_are_labels_and_kinds_differ_from_their_lists(define: Define) -> None:
    definition = define()
    inside(definition, "spec", "names").update(kind="1x", listKind="1x", shortNames=["A"], categories=["ok", "_"])

    assert texts(definition) == [
        f'spec.names.kind: Invalid value: "1x": may have mixed case, but should otherwise match: {OLD_LABEL}',
        f'spec.names.listKind: Invalid value: "1x": may have mixed case, but should otherwise match: {OLD_LABEL}',
        f'spec.names.shortNames[0]: Invalid value: "A": {OLD_LABEL}',
        'spec.names.listKind: Invalid value: "1x": kind and listKind may not be the same',
        f'spec.names.categories[1]: Invalid value: "_": {OLD_LABEL}',
    ]


def test_what_all_versions_share_is_reported_at_the_top_and_what_differs_in_the_version(define: Define) -> None:
    bad: JSONObject = {"type": "object", "properties": {"a": {}}}
    definition = define(bad)
    two = copied_object(definition)
    other: JSONObject = {"name": "v2", "served": True, "storage": False}
    other["schema"] = {"openAPIV3Schema": {"type": "object"}}
    items(two, "spec", "versions").append(other)
    complaint = "openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields"

    assert texts(definition) == [f"spec.validation.{complaint}"]
    assert texts(two) == [f"spec.versions[0].schema.{complaint}"]


def test_one_version_is_stored_and_every_name_is_there_once(define: Define) -> None:
    definition = define()
    versions = items(definition, "spec", "versions")
    versions.append(copied_object(mapping(versions[0])))
    shown = (
        '{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":null,"Schema":null,'
        '"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}'
    )

    assert texts(definition)[:2] == [
        f"spec.versions: Invalid value: [{shown},{shown}]: must contain unique version names",
        f"spec.versions: Invalid value: [{shown},{shown}]: must have exactly one version marked as storage version",
    ]


def test_a_version_has_a_schema_and_a_name(define: Define) -> None:
    definition = define(name="V1")
    del mapping(items(definition, "spec", "versions")[0])["schema"]

    assert texts(definition) == [
        "spec.versions[0].schema.openAPIV3Schema: Required value",
        f'spec.versions[0].name: Invalid value: "V1": {OLD_LABEL}',
        f'spec.version: Invalid value: "V1": {OLD_LABEL}',
    ]


@pytest.mark.parametrize(
    ("annotation", "error"),
    [
        ("unapproved, for tests", None),
        ("https://example.com/approval", None),
        (
            "",
            "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval "
            'annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
        ),
        (
            "nah",
            'metadata.annotations[api-approved.kubernetes.io]: Invalid value: "nah": protected groups must have '
            'approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with '
            '"unapproved", see https://github.com/kubernetes/enhancements/pull/1111',
        ),
    ],
)
def test_groups_of_kubernetes_need_an_approval(define: Define, annotation: str, error: str | None) -> None:
    definition = define()
    inside(definition, "spec")["group"] = "x.k8s.io"
    inside(definition, "metadata").update(
        name="widgets.x.k8s.io", annotations={"api-approved.kubernetes.io": annotation}
    )

    assert texts(definition) == ([error] if error else [])


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda spec: spec.update(scope="Cluster"), 'spec.scope: Invalid value: "Cluster": field is immutable'),
        (lambda spec: spec["names"].update(kind="X"), 'spec.names.kind: Invalid value: "X": field is immutable'),
        (lambda spec: spec.update(group="x.y"), 'spec.group: Invalid value: "x.y": field is immutable'),
        (lambda spec: spec["names"].update(plural="x"), 'spec.names.plural: Invalid value: "x": field is immutable'),
        (
            lambda spec: spec["versions"][0].update(name="v2"),
            'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage '
            "version, and must remain in spec.versions until a storage migration ensures no data remains persisted in "
            "v1 and removes v1 from status.storedVersions",
        ),
    ],
)
def test_fields_that_storage_depends_on_are_immutable(
    define: Define, change: Callable[[JSONObject], object], error: str
) -> None:
    assert changed(define(), change) == [error]


def test_a_new_storage_version_joins_the_stored_ones(define: Define) -> None:
    old = define()
    new = copied_object(old)
    versions = items(new, "spec", "versions")
    mapping(versions[0])["storage"] = False
    versions.append({"name": "v2", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}})

    prepare_update(new, old)

    assert mapping(new, "status")["storedVersions"] == ["v1", "v2"]
    assert mapping(old, "status")["storedVersions"] == ["v1"]
    assert validate_definition_update(new, old) == []


def test_an_update_of_the_status_leaves_the_spec(define: Define) -> None:
    old = define()
    new = copied_object(old)
    new["spec"] = {}
    new["status"] = {"acceptedNames": {"plural": "A"}}

    prepare_status(new, old)

    assert new["spec"] == old["spec"]
    assert [str(error) for error in validate_definition_status(new, old)] == [
        f'status.acceptedNames.plural: Invalid value: "A": {OLD_LABEL}'
    ]


def test_formats_that_are_not_checked_are_warned_about_when_they_come(define: Define) -> None:
    schema: JSONObject = {"type": "object", "properties": {"a": {"type": "string", "format": "wat"}}}
    old, new = define(), define(schema)

    assert definition_warnings(new) == ['unrecognized format "wat"']
    assert definition_warnings(new, old) == ['unrecognized format "wat"']
    assert definition_warnings(new, new) == []
