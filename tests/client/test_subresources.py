from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kubewright.api.apps.v1 import Deployment
from kubewright.api.autoscaling.v1 import Scale
from kubewright.api.certificates.v1 import CertificateSigningRequest
from kubewright.api.codec import decode
from kubewright.api.core.v1 import Binding, ObjectReference, Pod, PodSpec, ServiceAccount
from kubewright.api.kinds import ObjectKey
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client.client import Client
from kubewright.client.errors import NotFound, ProtocolError, TooManyRequests

if TYPE_CHECKING:
    from tests.client.conftest import ScriptedServer

POD = Pod(metadata=ObjectMeta(name="web-1", namespace="shop", uid="u-1"), spec=PodSpec(containers=[]))
DONE: dict[str, JSONValue] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
SCALE: dict[str, JSONValue] = {
    "kind": "Scale",
    "metadata": {"name": "web"},
    "spec": {"replicas": 3},
    "status": {"replicas": 2},
}


async def test_scale_is_read_of_anything_that_scales(client: Client, server: ScriptedServer) -> None:
    server.answers(SCALE)
    scale = await client.get_scale(Deployment, "web")

    assert scale.spec is not None
    assert scale.status is not None
    assert (scale.spec.replicas, scale.status.replicas) == (3, 2)
    assert server.sent[0].target == "/apis/apps/v1/namespaces/shop/deployments/web/scale"


async def test_a_scale_is_not_read_as_the_kind_that_scales(client: Client, server: ScriptedServer) -> None:
    with pytest.raises(TypeError, match=r"^the scale of a Deployment is a Scale: write client\.get_scale"):
        await client.subresource("scale").get(Deployment, "web")
    assert server.sent == []


async def test_scaling_changes_the_number_and_nothing_else(client: Client, server: ScriptedServer) -> None:
    server.answers(SCALE)
    await client.scale(Deployment, "web", replicas=0, dry_run=True)

    (sent,) = server.sent
    assert (sent.method, sent.path) == ("PATCH", "/apis/apps/v1/namespaces/shop/deployments/web/scale")
    assert sent.query == {"dryRun": "All", "fieldManager": "kubewright"}
    assert sent.json == {"spec": {"replicas": 0}}


async def test_scaling_an_absent_object_names_it(client: Client, server: ScriptedServer) -> None:
    server.refuses(404, "NotFound", "no", name="web")
    with pytest.raises(NotFound, match=r"^patch Deployment/scale shop/web: no$"):
        await client.scale(Deployment, "web", replicas=3)


@pytest.mark.parametrize("pod", [POD, "web-1", ObjectKey("shop", "web-1")], ids=["object", "name", "key"])
async def test_an_eviction_is_posted(client: Client, server: ScriptedServer, pod: Pod | str | ObjectKey) -> None:
    server.answers(DONE, status=201)
    await client.evict(pod, grace_period=0)

    (sent,) = server.sent
    assert (sent.method, sent.path) == ("POST", "/api/v1/namespaces/shop/pods/web-1/eviction")
    assert sent.json == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web-1", "namespace": "shop"},
        "deleteOptions": {"gracePeriodSeconds": 0},
    }


async def test_an_eviction_that_the_budget_forbids_is_too_many_requests(client: Client, server: ScriptedServer) -> None:
    server.refuses(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
    with pytest.raises(TooManyRequests, match=r"^create Pod/eviction shop/web-1: Cannot evict pod") as caught:
        await client.evict("web-1", dry_run=True)

    assert caught.value.is_temporary
    assert server.sent[0].query["dryRun"] == "All"


async def test_a_pod_is_bound_to_a_node(client: Client, server: ScriptedServer) -> None:
    server.answers(DONE, status=201)
    await client.bind("web-1", "node-1")

    (sent,) = server.sent
    assert (sent.method, sent.path) == ("POST", "/api/v1/namespaces/shop/pods/web-1/binding")
    assert sent.json == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web-1", "namespace": "shop"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"},
    }


async def test_a_token_is_requested_for_a_service_account(client: Client, server: ScriptedServer) -> None:
    server.answers(
        {
            "kind": "TokenRequest",
            "metadata": {"name": "robot"},
            "spec": {"audiences": ["vault"]},
            "status": {"token": "t", "expirationTimestamp": "2024-01-01T00:00:00Z"},
        },
        status=201,
    )
    answer = await client.token("robot", audiences=["vault"], expiration_seconds=600, bound_to=POD)

    assert answer.status is not None
    assert answer.status.token == "t"
    (sent,) = server.sent
    assert sent.path == "/api/v1/namespaces/shop/serviceaccounts/robot/token"
    assert isinstance(sent.json, dict)
    assert (sent.json["apiVersion"], sent.json["kind"]) == ("authentication.k8s.io/v1", "TokenRequest")
    assert sent.json["spec"] == {
        "audiences": ["vault"],
        "expirationSeconds": 600,
        "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "web-1", "uid": "u-1"},
    }


async def test_the_service_account_may_be_given_itself(client: Client, server: ScriptedServer) -> None:
    server.refuses(404, "NotFound", name="robot")
    with pytest.raises(NotFound, match=r"^create ServiceAccount/token elsewhere/robot: no$"):
        await client.token(ServiceAccount(metadata=ObjectMeta(name="robot", namespace="elsewhere")))


async def test_status_is_read_as_the_kind_itself(client: Client, server: ScriptedServer) -> None:
    server.answers({"metadata": {"name": "web-1"}, "spec": {"containers": []}, "status": {"phase": "Running"}})
    pod = await client.status.get(Pod, "web-1")

    assert pod.status is not None
    assert pod.status.phase == "Running"
    assert server.sent[0].path == "/api/v1/namespaces/shop/pods/web-1/status"


async def test_a_subresource_of_another_kind_is_read_as_that_kind(client: Client, server: ScriptedServer) -> None:
    server.answers(SCALE)
    scale = await client.subresource("scale").read(Scale, Deployment, "web")

    assert scale.metadata.name == "web"


async def test_an_approval_is_written_with_its_status(client: Client, server: ScriptedServer) -> None:
    """Approving is writing a condition of the status, though not to /status."""
    stored = b"""{"kind": "CertificateSigningRequest", "metadata": {"name": "csr"},
                  "spec": {"request": "", "signerName": "x"}, "status": {}}"""
    server.answers(stored)
    server.answers(stored)
    request = decode(CertificateSigningRequest, stored)
    assert request.status is not None
    request.status.certificate = "eA=="
    await client.subresource("approval").update(request)
    await client.subresource("approval").patch(request)

    update, patch = server.sent
    assert update.path == patch.path == "/apis/certificates.k8s.io/v1/certificatesigningrequests/csr/approval"
    assert isinstance(update.json, dict)
    assert update.json["status"] == {"certificate": "eA=="}
    assert patch.json == {"status": {"certificate": "eA=="}}


async def test_a_body_that_is_only_acknowledged_comes_back_as_it_was(client: Client, server: ScriptedServer) -> None:
    server.answers(DONE, status=201)
    binding = Binding(target=ObjectReference(kind="Node", name="node-1"))

    assert await client.subresource("binding").create(binding, POD) is binding


async def test_a_body_that_is_answered_comes_back_as_the_answer(client: Client, server: ScriptedServer) -> None:
    server.answers({"kind": "Binding", "metadata": {"uid": "u-9"}, "target": {"name": "node-2"}}, status=201)
    answer = await client.subresource("binding").create(
        Binding(target=ObjectReference(name="node-1")), Pod, "web-1", namespace="elsewhere", dry_run=True
    )

    assert (answer.metadata.uid, answer.target.name) == ("u-9", "node-2")
    assert server.sent[0].path == "/api/v1/namespaces/elsewhere/pods/web-1/binding"
    assert server.sent[0].query["dryRun"] == "All"


async def test_an_answer_that_is_no_json_names_the_request(client: Client, server: ScriptedServer) -> None:
    server.answers(b"<html>")
    with pytest.raises(ProtocolError, match=r"^create Pod/eviction shop/web-1: the server answered 200"):
        await client.evict("web-1")
