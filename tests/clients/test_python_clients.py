"""Python's other Kubernetes clients, unmodified and in processes of their own, work on the embedded control plane."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, STDOUT, Process, create_subprocess_exec
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, Event
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONValue
from kubewright.client import Client
from kubewright.client.patch import MergePatch
from kubewright.client.wait import Expectation, Field, deleted, established
from kubewright.controlplane import ControlPlane

OPERATOR = Path(__file__).with_name("kopf_operator.py")
TIMEOUT = 30.0
KOPF_FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"

Bowl = Dynamic.of("clients.example.com/v1", "Bowl")

OFFICIAL_CLIENT = """
import json
import pathlib
import sys

from kubernetes import client, config, watch

config.load_kube_config()
core, apps, custom = client.CoreV1Api(), client.AppsV1Api(), client.CustomObjectsApi()
summary = {"version": client.VersionApi().get_code().git_version}

core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="official")))

for name, tier in (("one", "front"), ("two", "back")):
    metadata = client.V1ObjectMeta(name=name, labels={"tier": tier})
    core.create_namespaced_config_map("official", client.V1ConfigMap(metadata=metadata, data={"name": name}))
listed = core.list_namespaced_config_map("official", label_selector="tier in (front,back)", limit=1)
summary["first page"] = [item.metadata.name for item in listed.items]
listed = core.list_namespaced_config_map(
    "official", label_selector="tier in (front,back)", limit=1, _continue=listed.metadata._continue
)
summary["second page"] = [item.metadata.name for item in listed.items]
listed = core.list_config_map_for_all_namespaces(label_selector="tier=back")
summary["by label"] = [item.metadata.name for item in listed.items]
listed = core.list_namespaced_config_map("official", field_selector="metadata.name=one")
summary["by field"] = [item.metadata.name for item in listed.items]

def container(name, image):
    return client.V1Container(name=name, image=image)

template = client.V1PodTemplateSpec(
    metadata=client.V1ObjectMeta(labels={"app": "web"}),
    spec=client.V1PodSpec(containers=[container("main", "nginx:1.27"), container("side", "busybox:1.37")]),
)
selector = client.V1LabelSelector(match_labels={"app": "web"})
apps.create_namespaced_deployment(
    "official",
    client.V1Deployment(
        metadata=client.V1ObjectMeta(name="web"),
        spec=client.V1DeploymentSpec(replicas=2, selector=selector, template=template),
    ),
)
for event in watch.Watch().stream(
    apps.list_namespaced_deployment, "official", field_selector="metadata.name=web", timeout_seconds=20
):
    summary["ready replicas"] = event["object"].status.ready_replicas
    if summary["ready replicas"] == 2:
        break
summary["pods"] = len(core.list_namespaced_pod("official", label_selector="app=web").items)
change = {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "busybox:1.38"}]}}}}
patched = apps.patch_namespaced_deployment("web", "official", change)
summary["images"] = sorted(each.image for each in patched.spec.template.spec.containers)
summary["generation"] = patched.metadata.generation
scaled = apps.patch_namespaced_deployment_scale("web", "official", {"spec": {"replicas": 1}})
summary["scaled"] = scaled.spec.replicas

revision = core.list_namespaced_config_map("official").metadata.resource_version
core.patch_namespaced_config_map("two", "official", {"data": {"changed": "yes"}})
core.delete_namespaced_config_map("two", "official")
summary["events"] = []
for event in watch.Watch().stream(
    core.list_namespaced_config_map, "official", label_selector="tier", resource_version=revision, timeout_seconds=20
):
    summary["events"].append([event["type"], event["object"].metadata.name, event["object"].data.get("changed")])
    if event["type"] == "DELETED":
        break

for name, action in (
    ("missing", lambda: core.read_namespaced_config_map("two", "official")),
    ("twice", lambda: core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="official")))),
    ("stale", lambda: core.replace_namespaced_config_map("one", "official", client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name="one", resource_version="1")))),
):
    try:
        action()
    except client.ApiException as error:
        summary[name] = [error.status, json.loads(error.body)["reason"]]

resource = ("clients.example.com", "v1", "official", "bowls")
bowl = {"apiVersion": "clients.example.com/v1", "kind": "Bowl", "metadata": {"name": "blue"}, "spec": {"fruit": "fig"}}
custom.create_namespaced_custom_object(*resource, bowl)
custom.patch_namespaced_custom_object(*resource, "blue", {"spec": {"fruit": "plum"}})
custom.patch_namespaced_custom_object_status(*resource, "blue", {"status": {"phase": "Full"}})
found = custom.list_namespaced_custom_object(*resource)["items"]
summary["bowls"] = [[each["spec"], each["status"]] for each in found]
custom.delete_namespaced_custom_object(*resource, "blue")
summary["bowls left"] = len(custom.list_namespaced_custom_object(*resource)["items"])

url = core.api_client.configuration.host + "/api/v1/namespaces/official/configmaps?labelSelector=tier"
table = core.api_client.call_api("GET", url, {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"})
table = json.loads(table.read())
summary["columns"] = [column["name"] for column in table["columnDefinitions"]]
summary["rows"] = [row["cells"][:2] for row in table["rows"]]

revision = core.list_namespace().metadata.resource_version
core.delete_namespace("official")
for event in watch.Watch().stream(
    core.list_namespace, field_selector="metadata.name=official", resource_version=revision, timeout_seconds=20
):
    if event["type"] == "DELETED":
        summary["namespace"] = "deleted"
        break
pathlib.Path(sys.argv[1]).write_text(json.dumps(summary))
"""


@pytest.fixture
async def client(embedded_control_plane: ControlPlane) -> AsyncIterator[Client]:
    """The admin, in "default", where Bowls are known."""
    async with embedded_control_plane.client() as admin:
        anything: JSONValue = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        definition = from_json(
            CustomResourceDefinition,
            {
                "metadata": {"name": "bowls.clients.example.com"},
                "spec": {
                    "group": "clients.example.com",
                    "scope": "Namespaced",
                    "names": {"plural": "bowls", "singular": "bowl", "kind": "Bowl"},
                    "versions": [
                        {
                            "name": "v1",
                            "served": True,
                            "storage": True,
                            "subresources": {"status": {}},
                            "schema": {
                                "openAPIV3Schema": {
                                    "type": "object",
                                    "properties": {
                                        "spec": {"type": "object", "properties": {"fruit": {"type": "string"}}},
                                        "status": anything,
                                    },
                                }
                            },
                        }
                    ],
                },
            },
        )
        await admin.wait_for(await admin.create(definition), established, timeout=TIMEOUT)
        yield admin


@pytest.fixture
def kubeconfig(embedded_control_plane: ControlPlane, tmp_path: Path) -> Path:
    return embedded_control_plane.write_kubeconfig(tmp_path / "kubeconfig")


@asynccontextmanager
async def python(*arguments: str, kubeconfig: Path, output: Path) -> AsyncIterator[Process]:
    """A Python process that writes to a file, so that no pipe can block it. It does not outlive the block."""
    with output.open("wb") as file:
        process = await create_subprocess_exec(
            sys.executable,
            *arguments,
            env={**os.environ, "KUBECONFIG": str(kubeconfig), "NO_PROXY": "127.0.0.1"},
            stdin=DEVNULL,
            stdout=file,
            stderr=STDOUT,
        )
    try:
        yield process
    except Exception as error:
        error.add_note(output.read_text())
        raise
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.usefixtures("client")
async def test_the_official_client_works(kubeconfig: Path, tmp_path: Path) -> None:
    written, output = tmp_path / "summary.json", tmp_path / "output"
    async with python("-c", OFFICIAL_CLIENT, str(written), kubeconfig=kubeconfig, output=output) as process:
        code = await asyncio.wait_for(process.wait(), 2 * TIMEOUT)

    assert code == 0, output.read_text()
    summary = json.loads(written.read_text())
    assert summary.pop("version").startswith("v1.")
    assert summary == {
        "first page": ["one"],
        "second page": ["two"],
        "by label": ["two"],
        "by field": ["one"],
        "ready replicas": 2,
        "pods": 2,
        "images": ["busybox:1.38", "nginx:1.27"],
        "generation": 2,
        "scaled": 1,
        "events": [["MODIFIED", "two", "yes"], ["DELETED", "two", "yes"]],
        "missing": [404, "NotFound"],
        "twice": [409, "AlreadyExists"],
        "stale": [409, "Conflict"],
        "bowls": [[{"fruit": "plum"}, {"phase": "Full"}]],
        "bowls left": 0,
        "columns": ["Name", "Data", "Age"],
        "rows": [["one", 1]],
        "namespace": "deleted",
    }


async def test_a_kopf_operator_works(client: Client, kubeconfig: Path, tmp_path: Path) -> None:
    """Its finalizer, its state in annotations, its status patches, its events and the watches that drive it all."""
    output = tmp_path / "output"
    arguments = ("-m", "kopf", "run", "--all-namespaces", str(OPERATOR))
    async with python(*arguments, kubeconfig=kubeconfig, output=output) as process:
        bowl = from_json(Bowl, {"metadata": {"name": "blue", "namespace": "default"}, "spec": {"fruit": "fig"}})
        bowl = await client.create(bowl)
        filled = Field("status.phase").equals("Filled") & Field("status.created").equals({"child": "blue"})
        await client.wait_for(bowl, filled & handled("fig"), timeout=TIMEOUT)

        bowl = await client.get(Bowl, "blue")
        assert bowl.metadata.finalizers == [KOPF_FINALIZER]
        child = await client.get(ConfigMap, "blue")
        assert child.data == {"fruit": "fig"}
        assert [owner.uid for owner in child.metadata.owner_references] == [bowl.metadata.uid]

        async with asyncio.timeout(TIMEOUT), client.watch(Event, fields={"reason": "Filled"}) as events:
            posted = (await anext(aiter(events))).object
        assert (posted.message, posted.involved_object.uid) == ("with a fig", bowl.metadata.uid)

        await client.patch(bowl, MergePatch({"spec": {"fruit": "plum"}}))
        refilled = Field("status.phase").equals("Refilled")
        await client.wait_for(bowl, refilled & handled("plum"), timeout=TIMEOUT)
        assert (await client.get(ConfigMap, "blue")).data == {"fruit": "plum", "before": "fig"}

        await client.delete(bowl)
        await client.wait_for(bowl, deleted, timeout=TIMEOUT)
        assert (await client.get(ConfigMap, "blue-emptied")).data == {"fruit": "plum"}
        await client.wait_for(child, deleted, timeout=TIMEOUT)

        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), TIMEOUT) == 0, output.read_text()


def handled(fruit: str) -> Expectation:
    """That kopf has written down this content as the one it has seen to."""
    last = Field('metadata.annotations["kopf.zalando.org/last-handled-configuration"]')
    return last.satisfies(lambda value: f'"{fruit}"' in str(value), f"names {fruit}")
