from __future__ import annotations

import copy
from typing import Annotated

import pytest

from kubewright.api.apps.v1 import Deployment
from kubewright.api.codec import to_json
from kubewright.api.core.v1 import Container, ContainerPort, EmptyDirVolumeSource, PodSpec, Volume
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONValue, ListMap
from kubewright.api.meta import Condition
from kubewright.api.model import Model
from kubewright.api.partials import partial
from kubewright.api.resources import Object, Resource, resource


class Limits(Model):
    cpu: int = 1
    memory: int = 2


class File(Model, tag="File"):
    path: str
    mode: int = 1


class Nothing(Model, tag="Nothing"):
    pass


class WidgetSpec(Model):
    image: str
    replicas: int = 3
    limits: Limits = Limits()
    extra: Limits | None = None
    args: list[str] = ["run"]
    labels: dict[str, str] = {}
    source: File | Nothing | None = None
    file: File = File(path="a")


class WidgetStatus(Model):
    phase: str = "Pending"
    conditions: Annotated[list[Condition], ListMap("type")] = []


@resource("partials.kubewright.test/v1")
class Widget(Resource[WidgetSpec, WidgetStatus]):
    pass


@resource("partials.kubewright.test/v1")
class Plain(Resource[WidgetSpec, None]):
    pass


NAMES: dict[str, JSONValue] = {"apiVersion": "partials.kubewright.test/v1", "kind": "Widget"}


def fields_of(obj: Object) -> JSONValue:
    content = to_json(obj)
    assert isinstance(content, dict)
    assert content.pop("metadata") == {"name": "web", "namespace": "shop"}
    return {name: value for name, value in content.items() if name not in NAMES}


def test_nothing_is_sent_but_the_names_until_something_is_set() -> None:
    assert to_json(partial(Widget, name="web")) == {**NAMES, "metadata": {"name": "web"}}
    assert fields_of(partial(Widget, name="web", namespace="shop")) == {}
    assert fields_of(partial(Plain, name="web", namespace="shop")) == {}


def test_set_fields_are_sent_without_defaults() -> None:
    web = partial(Widget, name="web", namespace="shop")
    web.spec.replicas = 5
    web.spec.limits.cpu = 1
    web.spec.args.append("fast")
    web.spec.labels["tier"] = "front"
    web.status.phase = "Ready"

    assert fields_of(web) == {
        "spec": {"replicas": 5, "limits": {"cpu": 1}, "args": ["fast"], "labels": {"tier": "front"}},
        "status": {"phase": "Ready"},
    }


def test_structures_that_were_only_read_are_absent() -> None:
    web = partial(Widget, name="web", namespace="shop")
    assert not web.spec.limits.cpu
    assert not web.spec.args
    assert "tier" not in web.spec.labels

    assert fields_of(web) == {}


def test_a_zero_or_an_empty_list_that_is_set_is_sent() -> None:
    web = partial(Deployment, name="web", namespace="shop")
    web.spec.template.spec.host_network = False
    web.spec.template.spec.volumes = []
    web.spec.template.metadata.labels = {}

    assert fields_of(web) == {
        "spec": {"template": {"metadata": {"labels": {}}, "spec": {"hostNetwork": False, "volumes": []}}}
    }


def test_a_field_that_is_none_by_default_is_absent_when_it_is_none() -> None:
    web = partial(Widget, name="web", namespace="shop")
    web.spec.extra = None
    assert fields_of(web) == {}

    web.spec.extra = partial(Limits, memory=7)
    assert fields_of(web) == {"spec": {"extra": {"memory": 7}}}


def test_a_member_of_a_union_is_sent_with_its_tag() -> None:
    widget = partial(Widget, "a")
    widget.spec.source = partial(File, mode=2)
    assert to_json(widget)["spec"] == {"source": {"type": "File", "mode": 2}}  # type: ignore[call-overload, index]
    widget.spec.source = Nothing()
    assert to_json(widget)["spec"] == {"source": {"type": "Nothing"}}  # type: ignore[call-overload, index]
    widget.spec.source = None
    assert "spec" not in to_json(widget)  # type: ignore[operator]


def test_items_of_lists_may_be_partial_or_whole() -> None:
    web = partial(Deployment, name="web", namespace="shop")
    pod = web.spec.template.spec
    pod.containers.append(partial(Container, name="app", image="app:2"))
    pod.volumes.append(Volume(name="scratch", empty_dir=EmptyDirVolumeSource()))
    assert fields_of(web) == {
        "spec": {
            "template": {
                "spec": {
                    "containers": [{"name": "app", "image": "app:2"}],
                    "volumes": [{"name": "scratch", "emptyDir": {}}],
                }
            }
        }
    }

    web.spec.template.spec = PodSpec(containers=[Container(name="app", ports=[ContainerPort(container_port=80)])])
    assert fields_of(web) == {
        "spec": {
            "template": {
                "spec": {"containers": [{"name": "app", "ports": [{"containerPort": 80}], "resources": {}}]},
            }
        }
    }


def test_a_copy_is_as_partial_as_the_original() -> None:
    web = partial(Widget, name="web", namespace="shop")
    web.spec.args.append("fast")

    copied = copy.deepcopy(web)
    copied.spec.args.append("slow")

    assert fields_of(web) == {"spec": {"args": ["fast"]}}
    assert fields_of(copied) == {"spec": {"args": ["fast", "slow"]}}


def test_only_the_name_of_an_object_is_given_at_once() -> None:
    with pytest.raises(
        TypeError, match=r"^partial\(Widget, ...\) takes the name and the namespace.*: assign the other"
    ):
        partial(Widget, name="web", spec=None)
    with pytest.raises(TypeError, match=r'as in "web", namespace='):
        partial(Widget)
    with pytest.raises(TypeError, match=r"^partial\(Container, .* takes the fields of the structure by their names"):
        partial(Container, "app")  # type: ignore[type-var]
    with pytest.raises(TypeError, match=r"takes the class of an object or a structure, .* not 'Widget'"):
        partial("Widget", "web")  # type: ignore[call-overload]


def test_an_object_without_a_type_is_partial_anyway() -> None:
    with pytest.raises(TypeError, match="a Dynamic one sends what its content has"):
        partial(Dynamic.of("v1", "Gadget"), name="web")
