"""The same questions about identities and rights to both servers: every answer must be the same, to the letter.

Only what cannot be equal is made so before: uids, times, tokens and identifiers of credentials.
"""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import pytest

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Namespace, Node, Pod, Secret, ServiceAccount
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding
from kubewright.client import Client
from kubewright.client.http.transport import HTTPTransport
from kubewright.client.wait import exists
from kubewright.controlplane import ControlPlane
from kubewright.testing.namespaces import unique_name

AUTHENTICATION, AUTHORIZATION = "/apis/authentication.k8s.io/v1", "/apis/authorization.k8s.io/v1"
ACCESS = f"{AUTHORIZATION}/subjectaccessreviews"
LOCAL = f"{AUTHORIZATION}/namespaces/NAMESPACE/localsubjectaccessreviews"
MINE = f"{AUTHORIZATION}/selfsubjectaccessreviews"
RULES = f"{AUTHORIZATION}/selfsubjectrulesreviews"
TOKENS = f"{AUTHENTICATION}/tokenreviews"
WHO = f"{AUTHENTICATION}/selfsubjectreviews"
TOKEN = "/api/v1/namespaces/NAMESPACE/serviceaccounts/robot/token"
PODS = "/api/v1/namespaces/NAMESPACE/pods"

_NOT_EQUAL = (
    (re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"), "TIME"),
    (re.compile("X509SHA256=[0-9a-f]{64}"), "CERTIFICATE"),
    (re.compile(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"), "TOKEN"),
)


@dataclass(frozen=True)
class Place:
    """One of the servers, with a namespace of the same name in each, and who may ask there."""

    namespace: str
    users: Mapping[str, HTTPTransport]

    async def answer(
        self, method: str, path: str, body: JSONValue | bytes, headers: Mapping[str, str], user: str
    ) -> tuple[int, str]:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        content = content.replace(b"NAMESPACE", self.namespace.encode())
        answer = await self.users[user].request(
            method,
            path.replace("NAMESPACE", self.namespace),
            [("Content-Type", "application/json"), ("Accept", "application/json"), *headers.items()],
            content if method != "GET" else None,
            timeout=30,
        )
        refusal = answer.body.decode()
        for pattern, word in _NOT_EQUAL:
            refusal = pattern.sub(word, refusal)
        try:
            return answer.status, json.dumps(_without_managed_fields(json.loads(refusal)), sort_keys=True, indent=1)
        except ValueError:
            return answer.status, refusal


def _without_managed_fields(answer: JSONValue) -> JSONValue:
    """Their order in time is not what is compared here."""
    if isinstance(answer, dict):
        return {name: _without_managed_fields(value) for name, value in answer.items() if name != "managedFields"}
    return answer


async def prepare(plane: ControlPlane, namespace: str) -> None:
    async with plane.client() as admin:
        await admin.create(Namespace(metadata=ObjectMeta(name=namespace)))
        client: Client = admin.in_namespace(namespace)
        await client.wait_for(ServiceAccount, "default", exists, timeout=30)
        await client.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
        await client.create(Secret(metadata=ObjectMeta(name="secret")))
        for name, account in (("pod", "robot"), ("other", "default")):
            spec: JSONValue = {"serviceAccountName": account, "containers": [{"name": "a", "image": "b"}]}
            await client.create(from_json(Pod, {"metadata": {"name": name}, "spec": spec}))
        await client.create(Node(metadata=ObjectMeta(name=f"{namespace}-node")))
        rules: JSONValue = [
            {"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users", "groups", "serviceaccounts"]},
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["pod"]},
        ]
        role = from_json(ClusterRole, {"metadata": {"name": namespace}, "rules": rules})
        binding: JSONValue = {
            "metadata": {"name": namespace},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "jane"}],
        }
        await client.create(role)
        await client.create(from_json(ClusterRoleBinding, binding))


async def clean(plane: ControlPlane, namespace: str) -> None:
    async with plane.client() as admin:
        await admin.delete(ClusterRole, namespace)
        await admin.delete(ClusterRoleBinding, namespace)
        await admin.delete(Node, f"{namespace}-node")
        await admin.delete(Namespace, namespace)


@pytest.fixture
async def places(
    embedded_control_plane: ControlPlane, real_control_plane: ControlPlane
) -> AsyncIterator[tuple[Place, Place]]:
    namespace = unique_name("identities")
    found = []
    for plane in (embedded_control_plane, real_control_plane):
        await prepare(plane, namespace)
        jane = plane.add_user("jane", ["dev"])
        # A certificate is not needed to ask, so a context that only trusts the server is anonymous.
        anonymous = ssl.create_default_context(cadata=plane.ca_certificate)
        users = {
            "admin": HTTPTransport(plane.url, tls=plane.admin.ssl_context()),
            "jane": HTTPTransport(plane.url, tls=jane.ssl_context()),
            "nobody": HTTPTransport(plane.url, tls=anonymous),
        }
        found.append(Place(namespace, users))
    yield found[0], found[1]
    for place in found:
        for transport in place.users.values():
            await transport.aclose()
    for plane in (embedded_control_plane, real_control_plane):
        await clean(plane, namespace)


Question = tuple[str, str, str, JSONValue | bytes, dict[str, str]]


def ask(
    path: str, body: JSONValue | bytes = None, method: str = "POST", user: str = "admin", **headers: str
) -> Question:
    return user, method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}


def get(path: str, user: str = "admin", **headers: str) -> Question:
    return ask(path, None, "GET", user, **headers)


U: dict[str, JSONValue] = {"user": "jane"}
R: dict[str, JSONValue] = {"resourceAttributes": {"verb": "get", "resource": "pods"}}
N: dict[str, JSONValue] = {"nonResourceAttributes": {"verb": "get", "path": "/api"}}
HERE: dict[str, JSONValue] = {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "NAMESPACE"}}


def selecting(**selector: JSONValue) -> JSONValue:
    return {"spec": {**U, "resourceAttributes": {"verb": "list", "resource": "pods", **selector}}}


REVIEWS = {
    "nothing": ask(ACCESS, {}),
    "no body": ask(ACCESS, b""),
    "no JSON": ask(ACCESS, b"x"),
    "another kind": ask(ACCESS, {"apiVersion": "v1", "kind": "Pod"}),
    "another version": ask(ACCESS, {"apiVersion": "authorization.k8s.io/v9", "kind": "SubjectAccessReview"}),
    "unknown field": ask(f"{ACCESS}?fieldValidation=Strict", {"spec": {**U, **R, "more": 1}}),
    "wrong type": ask(ACCESS, {"spec": {"user": 7}}),
    "nobody": ask(ACCESS, {"spec": R}),
    "nothing to do": ask(ACCESS, {"spec": U}),
    "both": ask(ACCESS, {"spec": {**U, **R, **N}}),
    "a name": ask(ACCESS, {"metadata": {"name": "x"}, "spec": {**U, **R}}),
    "a namespace": ask(ACCESS, {"metadata": {"namespace": "x"}, "spec": {**U, **R}}),
    "refused": ask(ACCESS, {"spec": {**U, **R}}),
    "allowed by name": ask(
        ACCESS, {"spec": {**U, "resourceAttributes": {"verb": "get", "resource": "pods", "name": "pod"}}}
    ),
    "allowed path": ask(ACCESS, {"spec": {**U, "groups": ["system:authenticated"], **N}}),
    "master": ask(ACCESS, {"spec": {"groups": ["system:masters"], **R, "extra": {"k": ["v"]}, "uid": "7"}}),
    "dry run": ask(f"{ACCESS}?dryRun=All", {"spec": {**U, **R}}),
    "bad dry run": ask(f"{ACCESS}?dryRun=Some", {"spec": {**U, **R}}),
    "raw label selector": ask(ACCESS, selecting(labelSelector={"rawSelector": "a=b"})),
    "bad raw label selector": ask(ACCESS, selecting(labelSelector={"rawSelector": "a in ("})),
    "both label selectors": ask(
        ACCESS,
        selecting(labelSelector={"rawSelector": "a", "requirements": [{"key": "a", "operator": "Exists"}]}),
    ),
    "empty label selector": ask(ACCESS, selecting(labelSelector={})),
    "bad label requirement": ask(
        ACCESS, selecting(labelSelector={"requirements": [{"key": "-", "operator": "In"}, {"operator": "Huh"}]})
    ),
    "field requirement": ask(
        ACCESS, selecting(fieldSelector={"requirements": [{"key": "a", "operator": "In", "values": ["b"]}]})
    ),
    "bad field requirement": ask(ACCESS, selecting(fieldSelector={"requirements": [{"operator": "In"}]})),
    "local": ask(LOCAL, {"metadata": {"namespace": "NAMESPACE"}, "spec": {**U, **HERE}}),
    "local elsewhere": ask(LOCAL, {"metadata": {"namespace": "NAMESPACE"}, "spec": {**U, **R}}),
    "local without a place": ask(LOCAL, {"spec": {**U, **HERE}}),
    "local path": ask(LOCAL, {"metadata": {"namespace": "NAMESPACE"}, "spec": {**U, **N}}),
    "local other namespace": ask(LOCAL, {"metadata": {"namespace": "other"}, "spec": {**U, **HERE}}),
    "mine": ask(MINE, {"spec": R}),
    "mine, refused": ask(MINE, {"spec": R}, user="jane"),
    "mine, by nobody": ask(MINE, {"spec": R}, user="nobody"),
    "mine, empty": ask(MINE, {}),
    "rules nowhere": ask(RULES, {}),
    "rules by nobody": ask(RULES, {"spec": {"namespace": "NAMESPACE"}}, user="nobody"),
    "token review without a token": ask(TOKENS, {}),
    "token review of rubbish": ask(TOKENS, {"spec": {"token": "rubbish"}}),
    "token review by jane": ask(TOKENS, {"spec": {"token": "rubbish"}}, user="jane"),
    "who am I": ask(WHO, {}),
    "who is jane": ask(WHO, {}, user="jane"),
    "who am I, with more": ask(WHO, {"metadata": {"name": "x", "labels": {"a": "b"}}}),
    "get a review": get(ACCESS),
    "get a named review": get(f"{ACCESS}/x"),
    "delete reviews": ask(ACCESS, {}, method="DELETE"),
    "put a review": ask(f"{ACCESS}/x", {}, method="PUT"),
}


def token(**spec: JSONValue) -> Question:
    return ask(TOKEN, {"spec": spec})


def bound(**reference: JSONValue) -> Question:
    return token(boundObjectRef={"apiVersion": "v1", **reference})


REQUESTS = {
    "plain": token(),
    "no body": ask(TOKEN, b""),
    "audiences": token(audiences=["a", "b"]),
    "too short": token(expirationSeconds=599),
    "too long": token(expirationSeconds=1 << 33),
    "negative": token(expirationSeconds=-1),
    "no number": token(expirationSeconds="x"),
    "an hour and 7 s": token(expirationSeconds=3607),
    "pod": bound(kind="Pod", name="pod"),
    "pod of another account": bound(kind="Pod", name="other"),
    "missing pod": bound(kind="Pod", name="none"),
    "pod with a wrong uid": bound(kind="Pod", name="pod", uid="x"),
    "secret": bound(kind="Secret", name="secret"),
    "missing secret": bound(kind="Secret", name="none"),
    "node": bound(kind="Node", name="NAMESPACE-node"),
    "missing node": bound(kind="Node", name="none"),
    "config map": bound(kind="ConfigMap", name="a"),
    "deployment": bound(apiVersion="apps/v1", kind="Deployment", name="a"),
    "nothing in particular": bound(),
    "wrong name": ask(TOKEN, {"metadata": {"name": "x"}}),
    "wrong namespace": ask(TOKEN, {"metadata": {"namespace": "x"}}),
    "wrong uid": ask(TOKEN, {"metadata": {"uid": "x"}}),
    "missing account": ask(TOKEN.replace("robot", "none"), {}),
    "dry run": ask(f"{TOKEN}?dryRun=All", {}),
    "another kind": ask(TOKEN, {"apiVersion": "v1", "kind": "Pod"}),
    "unknown field": ask(f"{TOKEN}?fieldValidation=Strict", {"spec": {"more": 1}}),
    "get": get(TOKEN),
    "by jane": ask(TOKEN, {}, user="jane"),
}

IDENTITIES = {
    "nobody reads": get(PODS, "nobody"),
    "nobody reads one": get(f"{PODS}/pod", "nobody"),
    "nobody reads a subresource": get(f"{PODS}/pod/log", "nobody"),
    "nobody reads everything": get("/api/v1/pods", "nobody"),
    "nobody reads what is not there": get("/apis/nothing.example.com/v1/things", "nobody"),
    "nobody creates": ask(PODS, {}, user="nobody"),
    "nobody deletes all": ask(PODS, {}, method="DELETE", user="nobody"),
    "nobody discovers": get("/api", "nobody"),
    "nobody discovers groups": get("/apis/apps/v1", "nobody"),
    "nobody reads documents": get("/openapi/v3", "nobody"),
    "nobody asks for metrics": get("/metrics", "nobody"),
    "nobody is healthy": get("/healthz", "nobody"),
    "nobody is live": get("/livez", "nobody"),
    "nobody is ready": get("/readyz", "nobody"),
    "nobody looks around": get("/", "nobody"),
    "jane reads one": get(f"{PODS}/other", "jane"),
    "jane lists": get(PODS, "jane"),
    "jane watches": get(f"{PODS}?watch=true", "jane"),
    "jane lists a namespace that is not there": get("/api/v1/namespaces/none/pods", "jane"),
    "jane patches": ask(f"{PODS}/pod", {}, method="PATCH", user="jane", content_type="application/merge-patch+json"),
    "jane scales": ask("/apis/apps/v1/namespaces/NAMESPACE/deployments/a/scale", {}, method="PUT", user="jane"),
    "basic": get(PODS, "nobody", Authorization="Basic YTpi"),
    "bearer of nothing": get(PODS, "nobody", Authorization="Bearer "),
    "bearer of rubbish": get(PODS, "nobody", Authorization="Bearer rubbish"),
    "bearer of two words": get(PODS, "nobody", Authorization="Bearer a b"),
    "a certificate and rubbish": ask(WHO, {}, Authorization="Bearer rubbish"),
    "as bob": ask(WHO, {}, Impersonate_User="bob"),
    "as bob in groups": ask(WHO, {}, Impersonate_User="bob", Impersonate_Group="dev"),
    "as bob with all": ask(
        WHO, {}, Impersonate_User="bob", Impersonate_Uid="7", **{"Impersonate_Extra_Example.com%2fScope": "a"}
    ),
    "as nobody": ask(WHO, {}, Impersonate_User="system:anonymous"),
    "as a robot": ask(WHO, {}, Impersonate_User="system:serviceaccount:NAMESPACE:robot"),
    "groups of no user": ask(WHO, {}, Impersonate_Group="dev"),
    "uid of no user": ask(WHO, {}, Impersonate_Uid="7"),
    "jane as bob": ask(WHO, {}, user="jane", Impersonate_User="bob"),
    "jane as bob with a uid": ask(WHO, {}, user="jane", Impersonate_User="bob", Impersonate_Uid="7"),
    "jane as a robot": ask(WHO, {}, user="jane", Impersonate_User="system:serviceaccount:a:b"),
    "jane as master": ask(WHO, {}, user="jane", Impersonate_User="bob", Impersonate_Group="system:masters"),
    "nobody as bob": ask(WHO, {}, user="nobody", Impersonate_User="bob"),
    "as bob, reading": get(PODS, Impersonate_User="bob"),
}


@pytest.mark.parametrize("questions", [REVIEWS, REQUESTS, IDENTITIES], ids=["reviews", "tokens", "identities"])
async def test_both_servers_answer_alike(places: tuple[Place, Place], questions: dict[str, Question]) -> None:
    ours, theirs = places
    differences = []
    for name, (user, method, path, body, headers) in questions.items():
        answers = [await place.answer(method, path, body, headers, user) for place in (ours, theirs)]
        if answers[0] != answers[1]:
            differences.append(f"{name}:\n  ours   {answers[0]}\n  theirs {answers[1]}")
    assert not differences, "\n".join(differences)
