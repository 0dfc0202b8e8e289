from __future__ import annotations

from kubewright.api.apiextensions.v1 import JSONSchemaProps
from kubewright.api.apps.v1 import ControllerRevision, Deployment, DeploymentSpec, RollingUpdateDeployment
from kubewright.api.coordination.v1 import LeaseSpec
from kubewright.api.core.v1 import Container, ContainerPort, PodSpec, ResourceRequirements
from kubewright.api.meta import Condition, ObjectMeta
from kubewright.api.resource_k8s_io.v1 import DeviceClass
from kubewright.controlplane.embedded.apimachinery.document import mapping, text
from kubewright.controlplane.embedded.openapi.types import META, REFERENCE, closure, name_of, schema_of_type


def test_types_have_the_names_of_their_go_packages() -> None:
    assert name_of(Deployment) == "io.k8s.api.apps.v1.Deployment"
    assert name_of(ObjectMeta) == "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    assert name_of(DeviceClass) == "io.k8s.api.resource.v1.DeviceClass"
    assert name_of(JSONSchemaProps) == "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


def test_a_kind_has_its_group_version_kind() -> None:
    schema = schema_of_type(Deployment).schema
    kinds = [{"group": "apps", "kind": "Deployment", "version": "v1"}]
    assert schema["x-kubernetes-group-version-kind"] == kinds
    assert "required" not in schema


def test_structures_are_referred_to() -> None:
    properties = mapping(schema_of_type(DeploymentSpec).schema, "properties")
    assert properties["template"] == {"allOf": [{"$ref": f"{REFERENCE}io.k8s.api.core.v1.PodTemplateSpec"}]}
    assert properties["strategy"] == {
        "default": {},
        "allOf": [{"$ref": f"{REFERENCE}io.k8s.api.apps.v1.DeploymentStrategy"}],
        "x-kubernetes-patch-strategy": "retainKeys",
    }


def test_lists_say_how_they_are_merged() -> None:
    ports = mapping(schema_of_type(Container).schema, "properties", "ports")
    assert ports == {
        "type": "array",
        "items": {"default": {}, "allOf": [{"$ref": f"{REFERENCE}io.k8s.api.core.v1.ContainerPort"}]},
        "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
        "x-kubernetes-list-type": "map",
        "x-kubernetes-patch-merge-key": "containerPort",
        "x-kubernetes-patch-strategy": "merge",
    }
    volumes = mapping(schema_of_type(PodSpec).schema, "properties", "volumes")
    assert text(volumes, "x-kubernetes-patch-strategy") == "merge,retainKeys"
    finalizers = mapping(schema_of_type(ObjectMeta).schema, "properties", "finalizers")
    assert text(finalizers, "x-kubernetes-list-type") == "set"


def test_scalars_have_formats_and_known_values() -> None:
    schema = schema_of_type(ContainerPort).schema
    assert schema["required"] == ["containerPort"]
    assert mapping(schema, "properties", "containerPort") == {"type": "integer", "format": "int32"}
    assert mapping(schema, "properties", "protocol") == {"type": "string", "enum": ["SCTP", "TCP", "UDP"]}


def test_values_of_what_all_kinds_share_stay_open() -> None:
    assert "enum" not in mapping(schema_of_type(Condition).schema, "properties", "status")


def test_scalars_with_a_name_are_referred_to() -> None:
    int_or_string = f"{REFERENCE}io.k8s.apimachinery.pkg.util.intstr.IntOrString"
    quantity = f"{REFERENCE}io.k8s.apimachinery.pkg.api.resource.Quantity"
    surge = mapping(schema_of_type(RollingUpdateDeployment).schema, "properties", "maxSurge")
    assert surge == {"allOf": [{"$ref": int_or_string}]}
    limits = mapping(schema_of_type(ResourceRequirements).schema, "properties", "limits")
    assert limits == {"type": "object", "additionalProperties": {"$ref": quantity}}
    renewed = mapping(schema_of_type(LeaseSpec).schema, "properties", "renewTime")
    assert renewed == {"allOf": [{"$ref": f"{REFERENCE}{META}.MicroTime"}]}


def test_no_schema_is_empty() -> None:
    """kubectl explain takes an empty one for a missing one, and fails."""
    for cls in (JSONSchemaProps, ControllerRevision):
        for name, schema in mapping(schema_of_type(cls).schema, "properties").items():
            assert schema, name


def test_what_is_replaced_whole_says_so_where_it_is_defined() -> None:
    schemas = closure([DeploymentSpec])
    assert schemas[f"{META}.LabelSelector"]["x-kubernetes-map-type"] == "atomic"
    assert "x-kubernetes-map-type" not in mapping(schemas[name_of(DeploymentSpec)], "properties", "selector")
    assert "x-kubernetes-map-type" not in schema_of_type(DeploymentSpec).schema


def test_every_reference_resolves() -> None:
    schemas = closure([Deployment, JSONSchemaProps])

    def references(value: object) -> set[str]:
        if isinstance(value, dict):
            found = set().union(*map(references, value.values())) if value else set()
            reference = value.get("$ref")
            return found | ({reference} if isinstance(reference, str) else set())
        return set().union(*map(references, value)) if isinstance(value, list) and value else set()

    assert references(list(schemas.values())) <= {f"{REFERENCE}{name}" for name in schemas}
