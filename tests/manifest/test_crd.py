"""The CustomResourceDefinition of a kind, and what is wrong with a kind that cannot have one."""

import re
from collections.abc import Callable
from typing import Annotated, Any, cast

import pytest
import yaml
from msgspec import Meta

from kubewright.api.codec import to_json
from kubewright.api.core.v1 import Pod
from kubewright.api.int_or_string import IntOrString
from kubewright.api.markers import JSONValue
from kubewright.api.meta import Condition
from kubewright.api.model import Model
from kubewright.api.resources import Column, Object, Resource, Scale, resource
from kubewright.api.time import Time
from kubewright.manifest.crd import crd_of, crd_yaml, definition_of
from kubewright.manifest.errors import ManifestError


class PodManagerSpec(Model):
    image: Annotated[str, Meta(min_length=1)]
    replicas: Annotated[int, Meta(ge=1)] = 3


class PodManagerStatus(Model):
    ready_replicas: int = 0
    current_replicas: int = 0
    conditions: list[Condition] = []


@resource(
    "apps.mycompany.com/v1",
    columns=[Column("Ready", ".status.readyReplicas")],
    scale=Scale(".spec.replicas", ".status.currentReplicas"),
)
class PodManager(Resource[PodManagerSpec, PodManagerStatus]):
    """Keeps a number of identical pods running."""


class ExampleSpec(Model):
    size: int = 1
    share: float = 0.5
    color: str = "red"
    active: bool = True
    since: Time | None = None
    surge: IntOrString = 1
    anything: JSONValue = None
    tags: list[str] = []


class ExampleStatus(Model):
    size: int = 0
    selector: str = ""
    conditions: list[Condition] = []


def example(api_version: str = "example.com/v1", name: str = "Example", **options: Any) -> type[Object]:
    class Example(Resource[ExampleSpec, ExampleStatus]):
        pass

    Example.__name__ = name
    return resource(api_version, **({"kind": "Example"} | options))(Example)


def version_of(cls: type[Object]) -> dict[str, Any]:
    (version,) = cast("dict[str, Any]", crd_of(cls))["spec"]["versions"]
    return cast("dict[str, Any]", version)


def test_the_definition_of_a_kind() -> None:
    assert yaml.safe_load(crd_yaml(PodManager)) == crd_of(PodManager)
    assert (
        crd_yaml(PodManager)
        == """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podmanagers.apps.mycompany.com
spec:
  group: apps.mycompany.com
  names:
    kind: PodManager
    listKind: PodManagerList
    plural: podmanagers
    singular: podmanager
  scope: Namespaced
  versions:
  - additionalPrinterColumns:
    - jsonPath: .status.readyReplicas
      name: Ready
      type: integer
    - jsonPath: .metadata.creationTimestamp
      name: Age
      type: date
    name: v1
    schema:
      openAPIV3Schema:
        description: Keeps a number of identical pods running.
        properties:
          apiVersion:
            type: string
          kind:
            type: string
          metadata:
            type: object
          spec:
            properties:
              image:
                minLength: 1
                type: string
              replicas:
                default: 3
                minimum: 1
                type: integer
            required:
            - image
            type: object
          status:
            default: {}
            properties:
              conditions:
                default: []
                items:
                  description: One aspect of an object's state. `reason` is a CamelCase word for programs, `message` a sentence for users.
                  properties:
                    lastTransitionTime:
                      format: date-time
                      type: string
                    message:
                      default: ''
                      maxLength: 32768
                      type: string
                    observedGeneration:
                      format: int64
                      minimum: 0
                      type: integer
                    reason:
                      maxLength: 1024
                      minLength: 1
                      pattern: ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$
                      type: string
                    status:
                      enum:
                      - 'True'
                      - 'False'
                      - Unknown
                      type: string
                    type:
                      maxLength: 316
                      pattern: ^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$
                      type: string
                  required:
                  - lastTransitionTime
                  - reason
                  - status
                  - type
                  type: object
                type: array
              currentReplicas:
                default: 0
                type: integer
              readyReplicas:
                default: 0
                type: integer
            type: object
        required:
        - spec
        type: object
    served: true
    storage: true
    subresources:
      scale:
        specReplicasPath: .spec.replicas
        statusReplicasPath: .status.currentReplicas
      status: {}
"""  # noqa: E501  # descriptions are not wrapped
    )


def test_names_and_scope_come_from_the_decorator() -> None:
    cls = example(plural="exemplars", singular="one", namespaced=False, short_names=["ex"], categories=["all"])
    crd = cast("dict[str, Any]", crd_of(cls))
    assert crd["metadata"] == {"name": "exemplars.example.com"}
    assert crd["spec"]["scope"] == "Cluster"
    assert crd["spec"]["names"] == {
        "kind": "Example",
        "listKind": "ExampleList",
        "plural": "exemplars",
        "singular": "one",
        "shortNames": ["ex"],
        "categories": ["all"],
    }


def test_a_kind_without_status_has_no_subresources() -> None:
    @resource("example.com/v1")
    class Plain(Resource[ExampleSpec, None]):
        pass

    version = version_of(Plain)
    assert "subresources" not in version
    assert "status" not in version["schema"]["openAPIV3Schema"]["properties"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.size", "integer"),
        (".spec.share", "number"),
        (".spec.color", "string"),
        (".spec.active", "boolean"),
        (".spec.since", "date"),
        (".spec.surge", "string"),
        (".spec.anything.inside", "string"),
        (".spec.tags", "string"),
        (".spec.tags[0]", "string"),
        ('.status.conditions[?(@.type=="Ready")].status', "string"),
        ('.status.conditions[?(@.type=="Ready")].lastTransitionTime', "date"),
        (".metadata.creationTimestamp", "date"),
        (".metadata.generation", "integer"),
        (r".metadata.labels.example\.com/app", "string"),
    ],
)
def test_the_type_of_a_column_is_that_of_its_field(path: str, expected: str) -> None:
    columns = version_of(example(columns=[Column("It", path)]))["additionalPrinterColumns"]
    assert columns[0] == {"name": "It", "type": expected, "jsonPath": path}


def test_age_is_added_to_columns_unless_it_exists() -> None:
    given = [Column("Age", ".spec.since"), Column("Size", ".spec.size", "string", "How big", "int32", priority=1)]
    assert version_of(example(columns=given))["additionalPrinterColumns"] == [
        {"name": "Age", "type": "date", "jsonPath": ".spec.since"},
        {
            "name": "Size",
            "type": "string",
            "jsonPath": ".spec.size",
            "description": "How big",
            "format": "int32",
            "priority": 1,
        },
    ]
    added = version_of(example(columns=given[1:]))["additionalPrinterColumns"][-1]
    assert added == {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
    assert "additionalPrinterColumns" not in version_of(example())


def test_scale_selectable_fields_and_deprecation() -> None:
    version = version_of(
        example(
            scale=Scale(".spec.size", ".status.size", ".status.selector"),
            selectable_fields=[".spec.color", ".spec.active"],
            deprecated="use example.com/v2",
            served=False,
        )
    )
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.size",
            "statusReplicasPath": ".status.size",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert version["selectableFields"] == [{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.active"}]
    assert (version["deprecated"], version["deprecationWarning"]) == (True, "use example.com/v2")
    assert (version["served"], version["storage"]) == (False, True)
    assert "deprecationWarning" not in version_of(example(deprecated=""))


def test_versions_are_in_the_order_kubectl_prefers_whatever_the_order_of_the_types() -> None:
    names = ["v10", "v2", "v1", "v11beta1", "v1beta2", "v1alpha1", "next"]
    types = [example(f"example.com/{name}", storage=name == "v2") for name in names]
    assert crd_yaml(*types) == crd_yaml(*reversed(types))
    versions = cast("dict[str, Any]", crd_of(*reversed(types)))["spec"]["versions"]
    assert [version["name"] for version in versions] == names
    assert [version["name"] for version in versions if version["storage"]] == ["v2"]


@pytest.mark.parametrize(
    ("types", "complaint"),
    [
        (list, "a CustomResourceDefinition needs at least one type"),
        (lambda: [Object], 'Object is not a kind yet: decorate it with @resource("group/version")'),
        (
            lambda: [Pod],
            'Pod: the group "" of a custom resource must be a domain with a dot: '
            'write @resource("apps.example.com/v1") with a domain of yours',
        ),
        (lambda: [example("apps/v1")], 'write @resource("apps.example.com/v1") with a domain of yours'),
        (
            lambda: [example("apps.k8s.io/v1")],
            'Example: the group "apps.k8s.io" is reserved for the Kubernetes project: use a domain of yours',
        ),
        (lambda: [example(kind="My_Kind")], 'Example: the plural "my_kinds" is not a name'),
        (lambda: [example(kind="My_Kind", plural="kinds", singular="kind")], 'Example: the kind "my_kind" is not a'),
        (lambda: [example(short_names=["EX"])], 'Example: the short name "EX" is not a name'),
        (lambda: [example(categories=["a b"])], 'Example: the category "a b" is not a name'),
        (lambda: [example(kind="K" * 60, plural="k")], f'Example: the kind with List "{"k" * 60}list" is not a name'),
        (
            lambda: [example(name="New"), example("example.com/v2", name="Old")],
            "Old (v2), New (v1) all have storage=True: objects are stored in one version only; "
            "give @resource(..., storage=False) to the others",
        ),
        (
            lambda: [example(name="New", storage=False)],
            "none of New is the version objects are stored in: give @resource(..., storage=True) to one",
        ),
        (lambda: [example(name="A"), example(name="B")], "A (v1), B (v1): every version of a kind has one class"),
        (
            lambda: [example("example.com/v2", name="New"), example(name="Old", short_names=["o"])],
            "New and Old are not versions of one kind: short_names is () in the one and ('o',) in the other",
        ),
        (
            lambda: [example("example.com/v2", name="New"), example(name="Old", namespaced=False)],
            "namespaced is True in the one and False in the other",
        ),
        (
            lambda: [example("example.com/v2", name="New"), example(name="Old", kind="Other")],
            "the kind is 'Example' in the one and 'Other' in the other",
        ),
        (
            lambda: [example(subresources=["token"])],
            'Example: a custom resource cannot have the subresource "token", only status and scale',
        ),
        (lambda: [example(subresources=["scale"])], "Example: the subresource scale needs its paths: give scale="),
        (
            lambda: [example(scale=Scale(".spec.sise", ".status.size"))],
            'Example: spec_replicas of Scale: ".spec.sise" leads nowhere: .spec has no field "sise" (it has size',
        ),
        (
            lambda: [example(scale=Scale(".status.size", ".status.size"))],
            'Example: spec_replicas of Scale: ".status.size" must begin with .spec.',
        ),
        (
            lambda: [example(scale=Scale(".spec.size", ".spec.size"))],
            'Example: status_replicas of Scale: ".spec.size" must begin with .status.',
        ),
        (
            lambda: [example(scale=Scale(".spec.size", ".status.size", ".status.size"))],
            'Example: selector of Scale: ".status.size" is of type integer, but must be string',
        ),
        (
            lambda: [example(scale=Scale(".spec.color", ".status.size"))],
            'Example: spec_replicas of Scale: ".spec.color" is of type string, but must be integer',
        ),
        (
            lambda: [example(scale=Scale(".spec.tags[0]", ".status.size"))],
            "has more than names: expected a path such as .spec.replicas",
        ),
        (
            lambda: [example(columns=[Column("Size", ".spec.sise")])],
            'Example: column "Size": ".spec.sise" leads nowhere: .spec has no field "sise" (it has size',
        ),
        (
            lambda: [example(columns=[Column("Size", ".metadata.size")])],
            'Example: column "Size": ".metadata.size" leads nowhere: .metadata has no field "size" (it has name,',
        ),
        (
            lambda: [example(columns=[Column("Size", ".spec.size", "int")])],
            'Example: column "Size": the type "int" is none of boolean, date, integer, number, string',
        ),
        (
            lambda: [example(columns=[Column("Size", ".spec.size", format="int16")])],
            'Example: column "Size": the format "int16" is none of byte, date, date-time',
        ),
        (lambda: [example(columns=[Column("", ".spec.size")])], 'Example: column "": every column needs a name'),
        (
            lambda: [example(selectable_fields=[".spec.tags"])],
            'Example: selectable field: ".spec.tags" must be a string, boolean or integer outside of the metadata',
        ),
        (lambda: [example(selectable_fields=[".metadata.name"])], '".metadata.name" must be a string, boolean or'),
        (lambda: [example(selectable_fields=[".spec.colour"])], 'selectable field: ".spec.colour" leads nowhere'),
        (
            lambda: [example(selectable_fields=[".spec.color"] * 2)],
            "selectable_fields has 2 paths: at most 8 different",
        ),
        (lambda: [example(deprecated="x" * 257)], "must be one line of at most 256 printable bytes"),
        (lambda: [example(deprecated="one\ntwo")], "must be one line of at most 256 printable bytes"),
    ],
)
def test_what_the_server_would_refuse_is_an_error_with_the_fix(
    types: Callable[[], list[type[Object]]], complaint: str
) -> None:
    with pytest.raises(ManifestError) as caught:
        crd_of(*types())
    assert complaint in str(caught.value)


def test_extra_json_schema_adds_keywords_to_the_schema_of_the_whole_object() -> None:
    @resource(
        "example.com/v1",
        extra_json_schema={
            "oneOf": [{"required": ["size"]}, {"required": ["name"]}],
            "properties": {"metadata": {"properties": {"name": {"type": "string", "maxLength": 8}}}},
        },
    )
    class Shirt(Object):
        size: int | None = None
        name: str | None = None

    schema = version_of(Shirt)["schema"]["openAPIV3Schema"]
    assert schema["oneOf"] == [{"required": ["size"]}, {"required": ["name"]}]
    assert schema["properties"]["metadata"] == {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 8}},
    }


@pytest.mark.parametrize(
    ("extra", "complaint"),
    [
        ({"$ref": "#"}, '@resource of Shirt: extra_json_schema has "$ref", which the schema of a custom resource'),
        (
            {"properties": {"size": {"type": "string"}}},
            '@resource of Shirt: extra_json_schema has the property "size": it can have apiVersion, kind, metadata, '
            "all others are fields of the class",
        ),
    ],
)
def test_extra_json_schema_cannot_say_what_the_class_says(extra: dict[str, JSONValue], complaint: str) -> None:
    @resource("example.com/v1", extra_json_schema=extra)
    class Shirt(Object):
        size: int | None = None

    with pytest.raises(ManifestError, match=f"^{re.escape(complaint)}"):
        crd_of(Shirt)


def test_the_column_age_can_be_left_out() -> None:
    @resource("example.com/v1", columns=[Column("Size", ".size")], age_column=False)
    class Shirt(Object):
        size: int = 1

    assert [column["name"] for column in version_of(Shirt)["additionalPrinterColumns"]] == ["Size"]


def test_a_group_of_the_kubernetes_project_needs_its_approval() -> None:
    @resource("shirts.x-k8s.io/v1")
    class Fine(Object): ...

    @resource("shirts.k8s.io/v1", definition_annotations={"api-approved.kubernetes.io": "https://example.com/1"})
    class Approved(Object): ...

    crd_of(Fine)
    assert crd_of(Approved)["metadata"] == {
        "name": "approveds.shirts.k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://example.com/1"},
    }


def test_the_definition_as_an_object_is_the_same() -> None:
    definition = definition_of(PodManager)
    assert definition.spec.names.kind == "PodManager"
    sent = to_json(definition)
    assert isinstance(sent, dict)
    sent.pop("status")
    assert sent == crd_of(PodManager)
