"""What is compared with the real server's metrics is in tests/conformance/test_endpoints.py."""

from __future__ import annotations

from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.http.exchange import HTTPRequest
from kubewright.controlplane.embedded.server.assembly import assemble


async def test_stored_objects_are_counted_by_kind() -> None:
    server = assemble(tokens={"sesame": UserInfo("admin", ("system:masters",))}).server
    headers = {"authorization": "Bearer sesame"}
    for name in (b"a", b"b"):
        body = b'{"metadata":{"name":"%s"}}' % name
        created = await server.respond(
            HTTPRequest("POST", "/api/v1/namespaces/default/secrets", headers=headers, body=body)
        )
        assert created.status == 201

    response = await server.respond(HTTPRequest("GET", "/metrics", headers=headers))

    lines = response.body.decode().splitlines()
    assert 'apiserver_resource_objects{group="",resource="secrets"} 2' in lines
    assert 'apiserver_resource_objects{group="apps",resource="deployments"} 0' in lines
