"""Both servers at once, with a namespace and a custom kind that both have."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.conformance.differential.custom import GEAR_DEFINITION
from tests.conformance.differential.sides import Both

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.client.http.transport import HTTPTransport
from kubewright.client.wait import established, exists
from kubewright.controlplane import ControlPlane
from kubewright.testing.namespaces import unique_name


@pytest.fixture
async def both(
    embedded_control_plane: ControlPlane, real_control_plane: ControlPlane, request: pytest.FixtureRequest
) -> AsyncIterator[Both]:
    namespace = unique_name(request.node.name)
    transports: list[HTTPTransport] = []
    for plane in (embedded_control_plane, real_control_plane):
        async with plane.client() as client:
            await client.create(Namespace(metadata=ObjectMeta(name=namespace)))
            await client.wait_for(ServiceAccount, "default", exists, namespace=namespace, timeout=60)
            definition = await client.apply(from_json(CustomResourceDefinition, GEAR_DEFINITION))
            await client.wait_for(definition, established)
        transports.append(HTTPTransport(plane.url, tls=plane.admin.ssl_context()))
    yield Both((transports[0], transports[1]), namespace)
    for transport in transports:
        await transport.aclose()
