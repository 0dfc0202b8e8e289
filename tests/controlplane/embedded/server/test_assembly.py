"""What can be chosen of a server."""

from __future__ import annotations

from ipaddress import ip_network

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.http.exchange import HTTPRequest
from kubewright.controlplane.embedded.server.api_server import APIServer
from kubewright.controlplane.embedded.server.assembly import ServerOptions, assemble

POD: JSONObject = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}}
WEB: JSONObject = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}


async def create(server: APIServer, plural: str, obj: JSONObject, namespace: str = "default") -> tuple[int, JSONObject]:
    body = msgspec.json.encode(obj)
    response = await server.respond(
        HTTPRequest("POST", f"/api/v1/namespaces/{namespace}/{plural}", headers={}, body=body)
    )
    return response.status, msgspec.json.decode(response.body)


async def test_with_always_allow_an_anonymous_user_may_do_everything() -> None:
    assert (await create(assemble().server, "services", WEB))[0] == 403
    assert (await create(assemble(options=ServerOptions(always_allow=True)).server, "services", WEB))[0] == 201


async def test_disabled_admission_plugins_do_nothing() -> None:
    plugins = ("ServiceAccount", "NamespaceLifecycle")
    server = assemble(options=ServerOptions(always_allow=True, disabled_plugins=plugins)).server
    status, pod = await create(server, "pods", POD, "nowhere")
    assert status == 201
    assert text(pod, "spec", "serviceAccountName") == ""


async def test_services_have_addresses_of_the_network() -> None:
    server = assemble(options=ServerOptions(always_allow=True, network=ip_network("fd00::/64"))).server
    _, service = await create(server, "services", WEB)
    assert text(service, "spec", "clusterIP").startswith("fd00::")
