from __future__ import annotations

import subprocess
import sys
import zlib
from pathlib import Path

import msgspec
import pytest
from tools.generate_api.descriptions import descriptions
from tools.generate_api.documents import Document
from tools.generate_api.source import generate

import kubewright.api
from kubewright.api import Object, decode, resource_info, to_json
from kubewright.api.apiextensions.v1 import JSONSchemaProps
from kubewright.api.apps.v1 import Deployment, DeploymentSpec
from kubewright.api.autoscaling.v1 import Scale
from kubewright.api.builtin import MODULES
from kubewright.api.codec import decode_model
from kubewright.api.core.v1 import ConfigMap, Container, Pod, PodSpec, PodTemplateSpec, Service, ServiceSpec, Volume
from kubewright.api.events.v1 import Event
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.api.networking.v1 import NetworkPolicyIngressRule
from kubewright.api.policy.v1 import Eviction
from kubewright.api.rbac.v1 import Role
from kubewright.api.resource_k8s_io.v1 import DeviceAttribute
from kubewright.api.scheme import Scheme, built_in_kinds
from kubewright.api.shape import fields_of

FOLDER = Path(kubewright.api.__path__[0])


KINDS = [cls for api_version in MODULES for cls in built_in_kinds(api_version)]
each_kind = pytest.mark.parametrize("cls", KINDS, ids=lambda cls: str(resource_info(cls).gvk))


def test_generated_modules_are_what_the_generator_makes_of_the_real_servers_documents(
    documents: list[Document],
) -> None:
    generated = generate(documents)

    on_disk = {path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/**/*.py")} | {"builtin.py"}
    assert on_disk == set(generated)
    differing = [path for path, text in generated.items() if (FOLDER / path).read_text(encoding="utf-8") != text]
    assert differing == [], "run `make generate`"


def test_descriptions_are_what_the_generator_makes_of_the_real_servers_documents(documents: list[Document]) -> None:
    on_disk = FOLDER.parent / "controlplane/embedded/openapi/descriptions.json.zlib"

    # Uncompressed: versions of zlib differ in how they compress.
    assert zlib.decompress(on_disk.read_bytes()) == zlib.decompress(descriptions(documents)), "run `make generate`"


def test_every_api_version_has_kinds() -> None:
    assert all(built_in_kinds(api_version) for api_version in MODULES)
    assert len(KINDS) >= 89


@each_kind
def test_a_kind_is_found_by_its_name(cls: type[Object]) -> None:
    gvk = resource_info(cls).gvk

    assert Scheme().type_for(gvk.api_version, gvk.kind) is cls


@each_kind
def test_a_status_can_be_made_empty(cls: type[Object]) -> None:
    status = next((field for field in msgspec.structs.fields(cls) if field.name == "status"), None)

    if status is not None:
        assert isinstance(status.default_factory(), status.default_factory)


def test_importing_one_group_does_not_import_the_others() -> None:
    program = (
        "import sys, kubewright.api.apps.v1; from kubewright.api.builtin import MODULES;"
        "print(*sorted(set(MODULES.values()) & set(sys.modules)))"
    )

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert loaded.split() == ["kubewright.api.apps.v1", "kubewright.api.core.v1"]


def test_a_kind_knows_how_it_is_served() -> None:
    info = resource_info(Pod)

    assert (info.plural, info.singular, info.namespaced) == ("pods", "pod", True)
    assert info.short_names == ("po",)
    assert info.categories == ("all",)
    assert {"status", "log", "exec", "eviction", "binding", "ephemeralcontainers", "resize"} <= info.subresources


@pytest.mark.parametrize(("cls", "kind"), [(Eviction, "policy/v1 Eviction"), (Scale, "autoscaling/v1 Scale")])
def test_a_kind_that_is_only_the_body_of_a_subresource_has_a_type(cls: type[Object], kind: str) -> None:
    assert str(resource_info(cls).gvk) == kind


def test_structures_that_go_holds_by_value_are_never_none() -> None:
    service = Service()
    template = PodTemplateSpec(spec=PodSpec(containers=[Container(name="web")]))

    assert service.spec.ports == []
    assert service.status.load_balancer.ingress == []
    assert template.metadata.labels == {}
    assert template.spec.containers[0].resources.requests == {}


def test_a_zero_that_was_set_is_sent_and_an_empty_list_is_not() -> None:
    spec = DeploymentSpec(
        replicas=0, selector=LabelSelector(), template=PodTemplateSpec(spec=PodSpec(containers=[Container(name="a")]))
    )

    sent = to_json(Deployment(metadata=ObjectMeta(name="web"), spec=spec))

    assert isinstance(sent, dict)
    assert isinstance(sent["spec"], dict)
    assert sent["spec"]["replicas"] == 0
    assert to_json(ConfigMap(metadata=ObjectMeta(name="a"))) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a"},
    }


def test_names_that_camel_case_does_not_produce_are_spelled_as_kubernetes_does() -> None:
    assert to_json(ServiceSpec(cluster_ip="None", external_ips=["192.0.2.1"])) == {
        "clusterIP": "None",
        "externalIPs": ["192.0.2.1"],
    }
    assert to_json(NetworkPolicyIngressRule(from_=[])) == {}
    assert to_json(JSONSchemaProps(ref="#/a", not_=JSONSchemaProps(x_kubernetes_int_or_string=True))) == {
        "$ref": "#/a",
        "not": {"x-kubernetes-int-or-string": True},
    }


def test_fields_named_like_pythons_types_keep_their_types() -> None:
    attribute = decode_model(DeviceAttribute, b'{"bool": false, "int": 0}')

    assert attribute == DeviceAttribute(bool=False, int=0)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"additionalProperties": true}', JSONSchemaProps(additional_properties=True)),
        (b'{"additionalProperties": {}}', JSONSchemaProps(additional_properties=JSONSchemaProps())),
        (b'{"items": {}}', JSONSchemaProps(items=JSONSchemaProps())),
        (b'{"items": [{}]}', JSONSchemaProps(items=[JSONSchemaProps()])),
        (b'{"dependencies": {"a": ["b"]}}', JSONSchemaProps(dependencies={"a": ["b"]})),
    ],
)
def test_a_schema_where_a_boolean_or_a_list_may_stand_is_typed(raw: bytes, expected: JSONSchemaProps) -> None:
    assert decode_model(JSONSchemaProps, raw) == expected


def test_a_value_that_a_newer_server_knows_is_accepted() -> None:
    pod = decode(Pod, b'{"spec": {"containers": [], "restartPolicy": "OnTuesdays"}}')

    assert to_json(pod.spec) == {"containers": [], "restartPolicy": "OnTuesdays"}


def test_an_event_of_the_old_kind_is_read_with_its_missing_time() -> None:
    """Seen through events.k8s.io, events written by older components have `eventTime: null`."""
    assert decode(Event, b'{"metadata": {"name": "a"}, "eventTime": null}').event_time is None


def test_the_null_of_an_empty_required_list_is_an_empty_list() -> None:
    assert decode(Role, b'{"metadata": {"name": "a"}, "rules": null}').rules == []
    assert decode(Pod, b'{"spec": {"containers": null}}').spec.containers == []


def test_list_items_are_identified_by_the_servers_keys() -> None:
    assert fields_of(Container)["ports"].keys == ("containerPort", "protocol")
    assert fields_of(PodSpec)["volumes"].keys == ("name",)
    assert fields_of(PodSpec)["volumes"].item.model is Volume  # type: ignore[union-attr]  # a list has items
    assert fields_of(Container)["command"].keys == ()
