"""OpenAPI v2 as protobuf: byte for byte what the real server makes of its own document."""

from __future__ import annotations

import pytest

from kubewright.api.codec import decode_json
from kubewright.client import Config
from kubewright.client.http.response import Response
from kubewright.client.session import Session
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.openapi.protobuf import document_bytes

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


@pytest.mark.parametrize("accepted", [PROTOBUF, PROTOBUF.replace("v2.v1", "v2@v1"), f"{PROTOBUF},application/json"])
async def test_the_document_is_served_as_protobuf(control_plane: ControlPlane, accepted: str) -> None:
    session = Session(Config.from_kubeconfig_text(control_plane.kubeconfig()))

    async def read(media_type: str) -> Response:
        return await session.request("GET", "/openapi/v2", request="read", headers=[("Accept", media_type)])

    document, response, after = b"", await read(accepted), (await read("application/json")).body
    while document != after:  # definitions of other tests take a moment to appear, and to go
        document, response, after = after, await read(accepted), (await read("application/json")).body
    await session.aclose()

    decoded = decode_json(document)
    assert isinstance(decoded, dict)
    assert response.headers.get("content-type") == PROTOBUF
    assert response.body == document_bytes(decoded)
