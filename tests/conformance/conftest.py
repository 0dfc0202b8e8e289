"""One source, every control plane: `control_plane` is each of them in turn, `client` its admin in a fresh namespace.

Both are shared, the embedded one by the tests of a file, the real one by all: most tests ask a server one thing, and
starting one for each, or deleting its namespace there, would cost several times as much as the question.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from threading import Thread

import msgspec
import pytest
from tests.conformance.asking import Answer, Ask, AskAs, Fetch, Grant, decoded
from tests.conformance.custom_kinds import DEFINITIONS, Kind
from tests.conformance.declared_differences import comparable_warnings

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.authorization.v1 import SubjectAccessReview
from kubewright.api.codec import from_json
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding
from kubewright.api.resources import Object
from kubewright.client import Client
from kubewright.client.http.transport import HTTPTransport, Response
from kubewright.client.wait import established
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.controlplane.user import User
from kubewright.testing.fixtures import new_namespace
from kubewright.testing.namespaces import unique_name


class ServedControlPlane(EmbeddedControlPlane):
    """An embedded control plane as other programs have it: elsewhere, and reached by sockets."""

    def client(self, user: User | None = None) -> Client:
        return ControlPlane.client(self, user)


@pytest.fixture(scope="module")
def embedded_control_plane() -> Iterator[ControlPlane]:
    """Without nodes, as the real one is: pods are created, but run nowhere. In a thread, as tests have own loops."""
    plane, loop = ServedControlPlane(nodes=0), asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(plane.start(), loop).result()
    yield plane
    asyncio.run_coroutine_threadsafe(plane.stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.fixture
async def namespace(admin: Client, request: pytest.FixtureRequest) -> str:
    """The name of a namespace that is this test's own. It stays until the control plane ends."""
    return await new_namespace(admin, request.node.name)


@pytest.fixture
def client(admin: Client, namespace: str) -> Client:
    return admin.in_namespace(namespace)


@pytest.fixture
async def fetch(control_plane: ControlPlane) -> AsyncIterator[Fetch]:
    """A request as admin over a socket, without anything that the client of kubewright adds."""
    transport = HTTPTransport(control_plane.url, tls=control_plane.admin.ssl_context())

    async def request(
        path: str, method: str = "GET", headers: Sequence[tuple[str, str]] = (), body: bytes | None = None
    ) -> Response:
        async with asyncio.timeout(30):
            while True:
                answer = await transport.request(method, path, headers, body, timeout=30)
                # While the storage of a new kind is initialized; no test of such refusals sends a HEAD.
                if answer.status != 429 or method != "HEAD":
                    return answer
                await asyncio.sleep(0.05)

    yield request
    await transport.aclose()


@pytest.fixture
def ask(ask_as: AskAs) -> Ask:
    """Send a request as admin, byte for byte; `NAMESPACE` in its path and body is the test's own."""
    return ask_as("")


@pytest.fixture
def ask_as(fetch: Fetch, namespace: str) -> AskAs:
    """`ask_as(user, *groups)` is an `ask` whose requests are made as another user."""

    def asking_as(user: str, *groups: str) -> Ask:
        identity = [("Impersonate-User", user), *(("Impersonate-Group", group) for group in groups)] if user else []

        async def ask(
            method: str, path: str, body: JSONValue | bytes = None, content_type: str = "application/json"
        ) -> Answer:
            sent = body if isinstance(body, bytes) or body is None else msgspec.json.encode(body)
            headers = [("Content-Type", content_type), ("Accept", "application/json"), ("User-Agent", "tester/1")]
            if sent is not None:
                sent = sent.replace(b"NAMESPACE", namespace.encode())
            answer = await fetch(path.replace("NAMESPACE", namespace), method, [*headers, *identity], sent)
            try:
                found = decoded(answer)
            except msgspec.DecodeError:
                # Of what no API group is behind, the server says so in plain text.
                found = {"message": answer.body.decode()}
            return Answer(answer.status, found, comparable_warnings(answer.headers.getall("Warning")))

        return ask

    return asking_as


@pytest.fixture
async def grant(admin: Client, request: pytest.FixtureRequest) -> AsyncIterator[Grant]:
    """`await grant(user, *rules)` allows a user something in the whole cluster, until the test ends."""
    made: list[Object] = []

    async def granted(user: str, *rules: JSONObject) -> None:
        name = unique_name(request.node.name)
        # Allowed to no other user: shows when the server has seen role and binding.
        witness: JSONObject = {"verbs": ["witness"], "apiGroups": ["example.com"], "resources": [name]}
        role = from_json(ClusterRole, {"metadata": {"name": name}, "rules": [*rules, witness]})
        reference: JSONObject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        subject: JSONObject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
        binding: JSONObject = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
        made.append(await admin.create(role))
        made.append(await admin.create(from_json(ClusterRoleBinding, binding)))
        attributes: JSONObject = {"verb": "witness", "group": "example.com", "resource": name}
        review = from_json(SubjectAccessReview, {"spec": {"user": user, "resourceAttributes": attributes}})
        async with asyncio.timeout(20):
            while not (await admin.create(review)).status.allowed:
                await asyncio.sleep(0.01)

    yield granted
    for each in made:
        await admin.delete(each)


@pytest.fixture
async def widgets(admin: Client) -> None:
    """A custom kind, `example.com/v1 Widget`, that stores whatever it is given."""
    anything: JSONValue = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = from_json(
        CustomResourceDefinition,
        {
            "metadata": {"name": "widgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "subresources": {
                            "status": {},
                            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                        },
                        "schema": {
                            "openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}
                        },
                    }
                ],
            },
        },
    )
    await admin.wait_for(await admin.apply(definition), established)


@pytest.fixture
async def kind(ask: Ask, request: pytest.FixtureRequest) -> AsyncIterator[Kind]:
    """A custom kind of the test's own, which goes with it."""
    kind = Kind(ask, f"{unique_name(request.node.name)}.example.com")
    yield kind
    await ask("DELETE", f"{DEFINITIONS}/{kind.name}")
