"""Forms and selections that decide how, and whether, a server answers."""

from __future__ import annotations

import asyncio

import pytest
import yaml
from tests.conformance.asking import Fetch, decoded

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.markers import JSONObject
from kubewright.api.meta import ObjectMeta
from kubewright.api.rbac.v1 import PolicyRule, Role, RoleBinding, RoleRef, Subject
from kubewright.client import Client
from kubewright.client.errors import Forbidden
from kubewright.client.http.transport import HTTPTransport
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text


async def test_yaml_is_read_and_written(control_plane: ControlPlane, client: Client) -> None:
    path = f"/api/v1/namespaces/{client.namespace}/configmaps"
    headers = [("Content-Type", "application/yaml"), ("Accept", "application/yaml")]
    transport = HTTPTransport(control_plane.url, tls=control_plane.admin.ssl_context())
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: '1'}\n"
    created = await transport.request("POST", path, headers, body, timeout=30)
    await transport.aclose()
    assert created.status == 201
    assert created.headers.get("Content-Type") == "application/yaml"
    refusal = yaml.safe_load(created.body)
    assert (refusal["kind"], refusal["metadata"]["name"], refusal["data"]) == ("ConfigMap", "a", {"x": "1"})


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
async def test_tables_and_metadata_come_in_the_version_that_is_requested(
    fetch: Fetch, client: Client, version: str
) -> None:
    await client.create(ConfigMap(metadata=ObjectMeta(name="a")))
    path = f"/api/v1/namespaces/{client.namespace}/configmaps"

    async def ask(kind: str, path: str) -> JSONObject:
        response = await fetch(path, headers=[("Accept", f"application/json;as={kind};v={version};g=meta.k8s.io")])
        assert response.status == 200, response.body
        return decoded(response)

    table, metadata = await ask("Table", path), await ask("PartialObjectMetadataList", path)
    event = await ask("PartialObjectMetadata", f"{path}?watch=1&timeoutSeconds=1&fieldSelector=metadata.name%3Da")

    row = items(table, "rows")[0]
    shown = [table, mapping(row, "object"), metadata, mapping(items(metadata, "items")[0]), mapping(event, "object")]
    assert {text(one, "apiVersion") for one in shown} == {f"meta.k8s.io/{version}"}


async def test_there_is_no_table_of_what_can_be_discovered(fetch: Fetch) -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    refused = await fetch("/apis/apps/v1", headers=[("Accept", table)])
    plain = await fetch("/apis/apps/v1", headers=[("Accept", f"{table},application/json")])

    assert (refused.status, decoded(refused)["reason"]) == (406, "NotAcceptable")
    assert (plain.status, decoded(plain)["kind"]) == (200, "APIResourceList")


async def test_a_user_that_may_read_one_object_may_list_it_by_its_name(
    control_plane: ControlPlane, client: Client
) -> None:
    for name in ("mine", "other"):
        await client.create(ConfigMap(metadata=ObjectMeta(name=name)))
    rule = PolicyRule(verbs=["get", "list"], api_groups=[""], resources=["configmaps"], resource_names=["mine"])
    await client.create(Role(metadata=ObjectMeta(name="reader"), rules=[rule]))
    await client.create(
        RoleBinding(
            metadata=ObjectMeta(name="readers"),
            role_ref=RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="reader"),
            subjects=[Subject(kind="User", name="reader", api_group="rbac.authorization.k8s.io")],
        )
    )
    async with control_plane.client(control_plane.add_user("reader")) as reader:
        view = reader.in_namespace(client.namespace)
        assert await _once_allowed(view) == ["mine"]
        with pytest.raises(Forbidden):
            await view.list(ConfigMap)
        with pytest.raises(Forbidden):
            await view.list(ConfigMap, fields={"metadata.name": "other"})


async def _once_allowed(view: Client) -> list[str]:
    """The real authorizer learns of a binding a moment after it is made."""
    async with asyncio.timeout(30):
        while True:
            try:
                return [found.metadata.name for found in await view.list(ConfigMap, fields={"metadata.name": "mine"})]
            except Forbidden:
                await asyncio.sleep(0.01)


async def test_there_is_no_table_of_a_review(fetch: Fetch) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    body = b'{"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}'
    table = "application/json;as=Table;g=meta.k8s.io;v=v1"
    refused, answered = [
        await fetch(path, "POST", [("Accept", accept), ("Content-Type", "application/json")], body)
        for accept in (table, f"{table}, application/json")
    ]
    token = await fetch(
        "/api/v1/namespaces/default/serviceaccounts/default/token",
        "POST",
        [("Accept", table), ("Content-Type", "application/json")],
        b"{}",
    )
    assert (refused.status, answered.status, token.status) == (406, 201, 406)
    assert b'"kind":"SelfSubjectAccessReview"' in answered.body
