"""The difference as a strategic merge patch leads to the same object, and past what others write meanwhile."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from kubewright.api.apps.v1 import Deployment
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Container, EnvVar, Service, Toleration
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Resource, resource
from kubewright.client import Client

LABELS: JSONValue = {"app": "web"}
POD: JSONValue = {
    "containers": [
        {
            "name": "web",
            "image": "web:1",
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            "ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}],
            "args": ["--one", "--two"],
        },
        {"name": "log", "image": "log:1"},
    ],
    "volumes": [{"name": "tmp", "emptyDir": {}}],
    "nodeSelector": {"disk": "ssd"},
}


async def created(client: Client, namespace: str) -> Deployment:
    template: JSONValue = {"metadata": {"labels": LABELS}, "spec": POD}
    spec: JSONValue = {"replicas": 0, "selector": {"matchLabels": LABELS}, "template": template}
    return await client.create(
        from_json(Deployment, {"metadata": {"name": "web", "namespace": namespace}, "spec": spec})
    )


def _containers(deployment: Deployment) -> list[Container]:
    return deployment.spec.template.spec.containers


def _change_image(deployment: Deployment) -> None:
    _containers(deployment)[0].image = "web:2"


def _change_environment(deployment: Deployment) -> None:
    _containers(deployment)[0].env[:] = [EnvVar(name="C", value="3"), EnvVar(name="B", value="two")]


def _reverse(deployment: Deployment) -> None:
    _containers(deployment).reverse()


def _remove_container(deployment: Deployment) -> None:
    del _containers(deployment)[1]


def _remove_all_volumes(deployment: Deployment) -> None:
    deployment.spec.template.spec.volumes = []


def _change_one_of_two_ports(deployment: Deployment) -> None:
    del _containers(deployment)[0].ports[1]


def _change_arguments(deployment: Deployment) -> None:
    _containers(deployment)[0].args = ["--three"]


def _tolerate(deployment: Deployment) -> None:
    deployment.spec.template.spec.tolerations = [Toleration(key="a", operator="Exists")]


def _select_no_node(deployment: Deployment) -> None:
    deployment.spec.template.spec.node_selector = {}


def _recreate(deployment: Deployment) -> None:
    deployment.spec.strategy.type = "Recreate"
    deployment.spec.strategy.rolling_update = None


def _label(deployment: Deployment) -> None:
    deployment.metadata.labels["tier"] = "front"
    deployment.metadata.finalizers.append("example.com/mine")


CHANGES = [
    _change_image,
    _change_environment,
    _reverse,
    _remove_container,
    _remove_all_volumes,
    _change_one_of_two_ports,
    _change_arguments,
    _tolerate,
    _select_no_node,
    _recreate,
    _label,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
async def test_it_makes_the_object_what_the_program_made_it(
    admin: Client, namespace: str, change: Callable[[Deployment], None]
) -> None:
    deployment = await created(admin, namespace)
    change(deployment)
    patched = await admin.patch(deployment, strategic=True)

    assert patched.spec == deployment.spec
    assert (patched.metadata.labels, patched.metadata.finalizers) == (
        deployment.metadata.labels,
        deployment.metadata.finalizers,
    )
    patched.metadata.finalizers.clear()
    assert (await admin.patch(patched, strategic=True)).metadata.finalizers == []


async def test_items_that_others_changed_meanwhile_survive_without_a_lock(admin: Client, namespace: str) -> None:
    ours = await created(admin, namespace)
    theirs = copy.deepcopy(ours)
    theirs.spec.template.spec.containers.append(Container(name="theirs", image="theirs:1"))
    theirs.metadata.finalizers.append("example.com/theirs")
    await admin.patch(theirs, strategic=True)
    before = sum(admin.answers.values())
    _change_image(ours)
    ours.metadata.finalizers.append("example.com/ours")
    patched = await admin.patch(ours, strategic=True)

    assert sum(admin.answers.values()) == before + 1, "one request, and no conflict"
    assert {each.name: each.image for each in _containers(patched)} == {
        "web": "web:2",
        "log": "log:1",
        "theirs": "theirs:1",
    }
    assert sorted(patched.metadata.finalizers) == ["example.com/ours", "example.com/theirs"]
    patched.metadata.finalizers.clear()
    await admin.patch(patched, strategic=True)


async def test_a_list_that_is_replaced_whole_is_locked_all_the_same(admin: Client, namespace: str) -> None:
    """Two ports of one number: the merge key of services does not distinguish them."""
    ports: JSONValue = [{"name": "tcp", "port": 53, "protocol": "TCP"}, {"name": "udp", "port": 53, "protocol": "UDP"}]
    service = await admin.create(
        from_json(Service, {"metadata": {"name": "dns", "namespace": namespace}, "spec": {"ports": ports}})
    )
    theirs = copy.deepcopy(service)
    theirs.metadata.annotations["theirs"] = "1"
    await admin.patch(theirs)
    service.spec.ports[1].port = 54
    patched = await admin.patch(service, strategic=True)

    assert [port.port for port in patched.spec.ports] == [53, 54]
    assert patched.metadata.annotations == {"theirs": "1"}


@resource("example.com/v1")
class Widget(Resource[None, None]):
    """A custom kind."""


async def test_custom_kinds_take_no_such_patch(client: Client) -> None:
    with pytest.raises(TypeError, match=r"strategic=True is for Kubernetes' own kinds: Widget of example\.com/v1"):
        await client.patch(Widget(metadata=ObjectMeta(name="a"), spec=None), strategic=True)
