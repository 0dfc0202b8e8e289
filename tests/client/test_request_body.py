"""What part of an object goes out by which request."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from kubewright.api.codec import decode, encode, from_json
from kubewright.api.core.v1 import Container, EmptyDirVolumeSource, Pod, PodSpec, Volume
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import Model
from kubewright.api.resources import Resource, resource, resource_info
from kubewright.client.request_body import for_apply, for_create, for_patch, for_update, whole


class Spec(Model):
    size: int
    note: str | None = None


class AppStatus(Model):
    ready: int = 0


@resource("example.com/v1")
class App(Resource[Spec, AppStatus]):
    pass


@resource("example.com/v1")
class Plain(Resource[Spec, None]):
    pass


APP, PLAIN, POD = resource_info(App), resource_info(Plain), resource_info(Pod)
METADATA = {
    "name": "a",
    "namespace": "shop",
    "uid": "u-1",
    "resourceVersion": "7",
    "generation": 2,
    "creationTimestamp": "2024-01-01T00:00:00Z",
    "deletionTimestamp": "2024-01-02T00:00:00Z",
    "deletionGracePeriodSeconds": 30,
    "selfLink": "/x",
    "managedFields": [{"manager": "kubectl"}],
    "labels": {"app": "a"},
    "finalizers": ["example.com/f"],
}


def read() -> App:
    content = {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": METADATA,
        "spec": {"size": 1, "novelty": True},
        "status": {"ready": 1, "future": "x"},
    }
    return decode(App, msgspec.json.encode(content))


def test_create_sends_no_status_where_the_server_would_ignore_it() -> None:
    body = msgspec.json.decode(for_create(read(), APP))

    assert body == {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": METADATA,
        "spec": {"size": 1, "novelty": True},
    }


def test_create_sends_the_status_of_kinds_without_the_endpoint_for_it() -> None:
    assert "status" in msgspec.json.decode(for_create(read(), PLAIN))


def test_update_keeps_what_the_type_does_not_know() -> None:
    app = read()
    app.spec.size = 5

    assert msgspec.json.decode(for_update(app, APP, "")) == {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": METADATA,
        "spec": {"size": 5, "novelty": True},
    }


def test_update_of_a_subresource_sends_the_whole_object() -> None:
    app = read()
    app.status.ready = 3
    body = msgspec.json.decode(for_update(app, APP, "status"))

    assert body["status"] == {"ready": 3, "future": "x"}
    assert body["spec"] == {"size": 1, "novelty": True}


def test_update_of_the_status_sends_the_rest_as_it_was_read_but_for_metadata() -> None:
    app = read()
    app.spec.size = 5
    app.metadata.labels = {"a": "b"}
    app.status.ready = 3
    body = msgspec.json.decode(for_update(app, APP, "status"))

    assert body["spec"] == {"size": 1, "novelty": True}
    assert body["metadata"] == {**METADATA, "labels": {"a": "b"}}
    assert body["status"] == {"ready": 3, "future": "x"}


def test_apply_sends_what_was_set_and_nothing_the_server_decides() -> None:
    assert for_apply(read(), APP, "") == {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {"name": "a", "namespace": "shop", "labels": {"app": "a"}, "finalizers": ["example.com/f"]},
        "spec": {"size": 1, "novelty": True},
    }


def test_apply_leaves_out_unset_structures_and_keeps_empty_ones_that_were_set() -> None:
    pod = Pod(
        metadata=ObjectMeta(name="web-1"),
        spec=PodSpec(
            containers=[Container(name="app", image="web:1")],
            volumes=[Volume(name="scratch", empty_dir=EmptyDirVolumeSource())],
        ),
    )

    assert for_apply(pod, resource_info(Pod), "") == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-1"},
        "spec": {
            "containers": [{"name": "app", "image": "web:1"}],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
        },
    }


def test_apply_of_status_sends_status_alone() -> None:
    """Labels in it would be owned by the writer of the status from then on."""
    assert for_apply(read(), APP, "status") == {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {"name": "a", "namespace": "shop"},
        "status": {"ready": 1, "future": "x"},
    }


MANIFEST: JSONValue = {
    "metadata": {"name": "web", "novel": True},
    "spec": {
        "hostNetwork": False,
        "containers": [{"name": "app", "image": "web:1", "novel": 1}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
    },
}


@pytest.mark.parametrize(
    "write",
    [
        lambda pod: for_create(pod, POD),
        lambda pod: for_update(pod, POD, ""),
        lambda pod: encode(for_apply(pod, POD, "")),
        whole,
    ],
    ids=["create", "update", "apply", "post"],
)
def test_a_manifest_is_written_as_it_stands_with_the_changes_and_its_kind(write: Callable[[Pod], bytes]) -> None:
    pod = from_json(Pod, MANIFEST)
    pod.spec.containers[0].image = "web:2"

    assert msgspec.json.decode(write(pod)) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "novel": True},
        "spec": {
            "hostNetwork": False,
            "containers": [{"name": "app", "image": "web:2", "novel": 1}],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
        },
    }


def test_a_difference_is_split_between_the_object_and_its_status() -> None:
    difference = msgspec.json.decode(b'{"metadata":{"labels":{"a":"1"}},"spec":{"size":2},"status":{"ready":3}}')

    assert for_patch(difference, APP, "") == {"metadata": {"labels": {"a": "1"}}, "spec": {"size": 2}}
    assert for_patch(difference, APP, "status") == {"status": {"ready": 3}}
    assert for_patch(difference, PLAIN, "") == difference


def test_another_subresource_gets_the_whole_difference() -> None:
    """A certificate signing request is approved by writing its status to /approval."""
    difference = msgspec.json.decode(b'{"status":{"conditions":[]}}')

    assert for_patch(difference, APP, "approval") == difference
