"""No process runs on simulated nodes, as the server answers. What comes before that is in conformance/test_kubectl."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kubewright.api.core.v1 import Container, Pod, PodSpec
from kubewright.api.meta import ObjectMeta
from kubewright.client import Config
from kubewright.client.errors import APIError
from kubewright.client.session import Session
from kubewright.client.wait import ready
from kubewright.controlplane import ControlPlane

PODS = "/api/v1/namespaces/default/pods"
NOT_RUNNING = "error dialing backend: no process runs on the node node-1 of an embedded control plane"
NOT_LISTENING = "error trying to reach service: nothing listens on {} in an embedded control plane"


@pytest.fixture
async def session(embedded_control_plane: ControlPlane) -> AsyncIterator[Session]:
    """To a server with a pod that seems to run."""
    containers = [Container(name="main", image="web:1"), Container(name="side", image="web:1")]
    async with embedded_control_plane.client() as client:
        pod = Pod(metadata=ObjectMeta(name="web", namespace="default"), spec=PodSpec(containers=containers))
        await client.wait_for(await client.create(pod), ready, timeout=60)
    session = Session(Config.from_kubeconfig_text(embedded_control_plane.kubeconfig()))
    yield session
    await session.aclose()


@pytest.mark.parametrize(
    ("target", "upgrade", "code", "message"),
    [
        (f"{PODS}/web/exec?container=main&command=true", True, 500, NOT_RUNNING),
        (f"{PODS}/web/exec?container=main&command=true", False, 400, "Upgrade request required"),
        (
            f"{PODS}/web/attach",
            True,
            400,
            "a container name must be specified for pod web, choose one of: [main side]",
        ),
        (f"{PODS}/web/attach?container=x", True, 400, "container x is not valid for pod web"),
        (f"{PODS}/web/portforward", True, 500, NOT_RUNNING),
        (f"{PODS}/web/proxy/", False, 503, NOT_LISTENING.format("web")),
        ("/api/v1/nodes/node-1/proxy/", False, 503, NOT_LISTENING.format("node-1")),
        (
            "/api/v1/namespaces/default/services/kubernetes/proxy/",
            False,
            503,
            'no endpoints available for service "kubernetes"',
        ),
        (f"{PODS}/nobody/exec", True, 404, 'pods "nobody" not found'),
    ],
)
async def test_a_stream_ends_where_the_node_would_be_contacted(
    session: Session, target: str, upgrade: bool, code: int, message: str
) -> None:
    headers = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1")] if upgrade else []
    with pytest.raises(APIError) as refused:
        await session.request("GET", target, request="connect", headers=headers)

    assert (refused.value.code, refused.value.status.message) == (code, message)
