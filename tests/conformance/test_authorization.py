"""Who may do what: each server's answers beside those of our own authorizer about the same roles and bindings."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kubewright.api.authentication.v1 import SelfSubjectReview
from kubewright.api.authorization.v1 import SelfSubjectRulesReview, SubjectAccessReview
from kubewright.api.codec import decode_json, from_json, origin
from kubewright.api.core.v1 import Pod
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding
from kubewright.api.resources import Object
from kubewright.client import Client, Config
from kubewright.client.config.impersonation import Impersonation
from kubewright.client.errors import APIError, Forbidden
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.apimachinery.document import at, items, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.auth.attributes import Attributes
from kubewright.controlplane.embedded.auth.bootstrap import bootstrap_objects
from kubewright.controlplane.embedded.auth.escalation import RoleWrite, escalation
from kubewright.controlplane.embedded.auth.impersonation import Impersonator
from kubewright.controlplane.embedded.auth.rbac import Authorizer, Decision
from kubewright.controlplane.embedded.auth.reviews import self_subject_rules_review
from kubewright.controlplane.embedded.auth.users import UserInfo

GROUP = "rbac.authorization.k8s.io"
KINDS: dict[str, type[ClusterRole | ClusterRoleBinding | Role | RoleBinding]] = {
    "ClusterRole": ClusterRole,
    "ClusterRoleBinding": ClusterRoleBinding,
    "Role": Role,
    "RoleBinding": RoleBinding,
}
PLURALS = {kind: f"{kind.lower()}s" for kind in KINDS}
# Every role allows this to a user that every binding names, to see when the server knows both.
WITNESS: JSONValue = {"verbs": ["witness"], "apiGroups": ["example.com"], "resources": ["witnesses"]}


@dataclass
class World:
    """Roles and bindings that exist both here, for our authorizer, and on the server. Names get a `prefix`."""

    prefix: str
    objects: list[JSONObject] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.authorizer = Authorizer(self)

    def _of(self, kind: str) -> list[JSONObject]:
        return [found for found in (*self.objects, *bootstrap_objects()) if found["kind"] == kind]

    def cluster_roles(self) -> Iterable[JSONObject]:
        return self._of("ClusterRole")

    def cluster_role_bindings(self) -> Iterable[JSONObject]:
        return self._of("ClusterRoleBinding")

    def roles(self) -> Iterable[JSONObject]:
        return self._of("Role")

    def role_bindings(self) -> Iterable[JSONObject]:
        return self._of("RoleBinding")

    def role(self, name: str, *rules: JSONValue, namespace: str = "") -> None:
        kind = "Role" if namespace else "ClusterRole"
        self._add(kind, name, namespace, {"rules": [*rules, WITNESS]})

    def bind(self, name: str, role: str, *subjects: JSONValue, namespace: str = "", kind: str = "ClusterRole") -> None:
        witness: JSONValue = {"kind": "User", "apiGroup": GROUP, "name": f"{self.prefix}{name}"}
        reference: JSONValue = {"apiGroup": GROUP, "kind": kind, "name": f"{self.prefix}{role}"}
        self._add(
            "RoleBinding" if namespace else "ClusterRoleBinding",
            name,
            namespace,
            {"roleRef": reference, "subjects": [*subjects, witness]},
        )

    def _add(self, kind: str, name: str, namespace: str, fields: JSONObject) -> None:
        metadata: JSONObject = {"name": f"{self.prefix}{name}"}
        if namespace:
            metadata["namespace"] = namespace
        self.objects.append({"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, **fields})

    @asynccontextmanager
    async def served(self, admin: Client) -> AsyncIterator[None]:
        """Everything is on the server, and its authorizer has seen it."""
        created: list[Object] = []
        try:
            for found in self.objects:
                created.append(await admin.create(from_json(KINDS[str(found["kind"])], found)))
            async with asyncio.timeout(60):
                for found in self.objects:
                    if "roleRef" in found:
                        await self._seen(admin, found)
            yield
        finally:
            for made in created:
                await admin.delete(made)

    async def _seen(self, admin: Client, binding: JSONObject) -> None:
        witness = Attributes(
            UserInfo(text(binding, "metadata", "name")),
            "witness",
            "example.com",
            resource="witnesses",
            namespace=text(binding, "metadata", "namespace"),
        )
        expected = self.authorizer.authorize(witness)
        # The real server reads roles and bindings from informers, which are a little behind.
        while await answer(admin, witness) != expected:
            await asyncio.sleep(0.01)


def user(name: str) -> JSONValue:
    return {"kind": "User", "apiGroup": GROUP, "name": name}


def group(name: str) -> JSONValue:
    return {"kind": "Group", "apiGroup": GROUP, "name": name}


def account(name: str, namespace: str = "") -> JSONValue:
    return {"kind": "ServiceAccount", "name": name, **({"namespace": namespace} if namespace else {})}


def rule(verbs: str, groups: str = "", resources: str = "", names: str = "", urls: str = "") -> JSONObject:
    """A rule from words; `core` is the group without a name."""
    found: JSONObject = {"verbs": [*verbs.split()]}
    if groups:
        found["apiGroups"] = ["" if name == "core" else name for name in groups.split()]
    for field_name, words in (("resources", resources), ("resourceNames", names), ("nonResourceURLs", urls)):
        if words:
            found[field_name] = [*words.split()]
    return found


def sent(received: Object) -> JSONValue:
    """An answer as the server sent it."""
    return decode_json(origin(received) or b"{}")


async def answer(admin: Client, attributes: Attributes) -> Decision:
    """The decision of the server's authorizer."""
    spec: JSONObject = {"user": attributes.user.name, "groups": [*attributes.user.groups]}
    if attributes.resource_request:
        spec["resourceAttributes"] = {
            "verb": attributes.verb,
            "group": attributes.group,
            "resource": attributes.resource,
            "subresource": attributes.subresource,
            "namespace": attributes.namespace,
            "name": attributes.name,
        }
    else:
        spec["nonResourceAttributes"] = {"verb": attributes.verb, "path": attributes.path}
    review = sent(await admin.create(from_json(SubjectAccessReview, {"spec": spec})))
    return Decision(at(review, "status", "allowed") is True, text(review, "status", "reason"))


def client_of(control_plane: ControlPlane, name: str, *groups: str) -> Client:
    return control_plane.client(control_plane.add_user(name, groups))


async def test_decisions_and_their_reasons_are_those_of_the_embedded_authorizer(admin: Client, namespace: str) -> None:
    world = World(f"{namespace}-")
    world.role("all", rule("*", "*", "*"))
    world.role("pods", rule("get list", "core", "pods pods/log"))
    world.role("scale", rule("update", "*", "*/scale"))
    world.role("named", rule("get update", "core", "configmaps", "one two"))
    world.role("paths", rule("get", urls="/metrics /logs/* /x*"))
    world.role("local", rule("delete", "apps", "deployments"), namespace=namespace)
    world.bind("anna", "all", user("anna"))
    world.bind("devs", "pods", group("devs"))
    world.bind("scalers", "scale", user("sam"), namespace=namespace)
    world.bind("named", "named", user("nora"))
    world.bind("paths", "paths", user("pat"))
    world.bind("paths-in-a-namespace", "paths", user("paul"), namespace=namespace)
    world.bind("local", "local", account("robot"), namespace=namespace, kind="Role")
    world.bind("robots", "pods", account("robot", namespace))
    world.bind("nowhere", "missing", user("moe"))
    world.bind("nowhere-here", "missing", user("mia"), namespace=namespace, kind="Role")
    robot = f"system:serviceaccount:{namespace}:robot"
    resources = [
        Attributes(UserInfo(name, groups), verb, api_group, "", resource, subresource, where, object_name)
        for name, groups in (
            ("anna", ()),
            ("bob", ("devs",)),
            ("sam", ()),
            ("nora", ()),
            ("moe", ()),
            ("mia", ()),
            (robot, ()),
            ("root", ("system:masters",)),
        )
        for verb, api_group, resource, subresource, object_name in (
            ("get", "", "pods", "", "web"),
            ("get", "", "pods", "log", "web"),
            ("delete", "apps", "deployments", "", "web"),
            ("update", "apps", "deployments", "scale", "web"),
            ("get", "", "configmaps", "", "two"),
            ("get", "", "configmaps", "", "three"),
            ("list", "", "configmaps", "", ""),
        )
        for where in (namespace, "elsewhere", "")
    ]
    paths = [
        Attributes(UserInfo(name), verb, path=path, resource_request=False)
        for name in ("pat", "paul", "anna")
        for verb, path in (("get", "/metrics"), ("get", "/logs"), ("get", "/logs/a/b"), ("get", "/xy"), ("put", "/xy"))
    ]

    async with world.served(admin):
        theirs = {question: await answer(admin, question) for question in (*resources, *paths)}

    assert {question: world.authorizer.authorize(question) for question in theirs} == theirs
    assert {decision.allowed for decision in theirs.values()} == {True, False}


WORDS = ["get", "list", "*"], ["", "apps", "*"], ["pods", "pods/log", "*/log", "deployments", "*"]
NUMBERS = itertools.count()


@st.composite
def rules(draw: st.DrawFn) -> JSONObject:
    def some(words: list[str]) -> list[JSONValue]:
        return [*draw(st.lists(st.sampled_from(words), min_size=1, max_size=2, unique=True))]

    if draw(st.booleans()):
        return {"verbs": some(WORDS[0]), "nonResourceURLs": some(["/a", "/a/*", "/ab*", "*"])}
    found: JSONObject = {"verbs": some(WORDS[0]), "apiGroups": some(WORDS[1]), "resources": some(WORDS[2])}
    if draw(st.booleans()):
        found["resourceNames"] = some(["x", "y"])
    return found


SUBJECTS = st.sampled_from(["User u", "User v", "Group g", "Group h"])
QUESTIONS = [
    (UserInfo(name, groups), verb, api_group, resource, subresource, object_name, in_namespace)
    for name, groups in (("u", ("g",)), ("v", ()), ("w", ("h", "g")))
    for verb in ("get", "create")
    for api_group, resource in (("", "pods"), ("apps", "deployments"))
    for subresource, object_name in (("", "x"), ("log", ""), ("", "z"))
    for in_namespace in (True, False)
]


@settings(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    cluster_rules=st.lists(st.lists(rules(), max_size=3), min_size=1, max_size=3),
    local_rules=st.lists(st.lists(rules().filter(lambda found: "resources" in found), max_size=3), max_size=2),
    bindings=st.lists(st.tuples(SUBJECTS, st.integers(0, 2), st.booleans()), min_size=2, max_size=4),
)
async def test_any_rules_are_understood_alike(
    admin: Client,
    namespace: str,
    cluster_rules: list[list[JSONObject]],
    local_rules: list[list[JSONObject]],
    bindings: list[tuple[str, int, bool]],
) -> None:
    world = World(f"{namespace}-{next(NUMBERS)}-")
    for number, found in enumerate(cluster_rules):
        world.role(f"role-{number}", *found)
    for number, found in enumerate(local_rules):
        world.role(f"role-{number}", *found, namespace=namespace)
    for index, (subject, number, local) in enumerate(bindings):
        kind, name = subject.split()
        bound: JSONValue = {"kind": kind, "apiGroup": GROUP, "name": name}
        if local and number < len(local_rules):
            world.bind(f"b{index}", f"role-{number}", bound, namespace=namespace, kind="Role")
        else:
            world.bind(f"b{index}", f"role-{number}", bound, namespace=namespace if local else "")
    questions = [
        Attributes(who, verb, api_group, "", resource, subresource, namespace if inside else "", object_name)
        for who, verb, api_group, resource, subresource, object_name, inside in QUESTIONS
    ]
    questions += [
        Attributes(UserInfo("u", ("g",)), "get", path=path, resource_request=False)
        for path in ("/a", "/a/b", "/abc", "/b")
    ]

    async with world.served(admin):
        theirs = await asyncio.gather(*(answer(admin, question) for question in questions))

    # Reasons are left out: which of several bindings is named depends on the order of a Go map.
    ours = [world.authorizer.authorize(question).allowed for question in questions]
    assert ours == [found.allowed for found in theirs]


async def test_no_user_grants_permissions_that_they_do_not_hold(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    world = World(f"{namespace}-")
    name = f"{namespace}-jane"
    world.role("writer", rule("create update get", GROUP, "*"), rule("get", "core", "pods"))
    world.role("secrets", rule("get list", "core", "secrets", "b a"), rule("get", urls="/x"))
    world.role("bindable", rule("delete", "core", "nodes"))
    world.role("binder", rule("bind", GROUP, "clusterroles", f"{namespace}-bindable"))
    world.bind("writers", "writer", user(name))
    world.bind("binders", "binder", user(name))
    world.bind("lost", "missing", user(name))
    fields: list[tuple[str, JSONObject]] = [
        ("Role", {"rules": [rule("get", "core", "pods")]}),
        ("Role", {"rules": [rule("get delete", "core apps", "pods pods/log"), rule("*", "*", "*")]}),
        ("ClusterRole", {"rules": [rule("get", urls="/x /y"), rule("get list", "core", "secrets", "a b")]}),
        ("ClusterRole", {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}}),
        ("RoleBinding", {"roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "nothing"}}),
        ("ClusterRoleBinding", {"roleRef": {"apiGroup": GROUP, "kind": "Role", "name": "nothing"}}),
    ]
    for kind, role in itertools.product(("RoleBinding", "ClusterRoleBinding"), ("secrets", "bindable", "nothing")):
        fields.append((kind, {"roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": f"{namespace}-{role}"}}))
    jane = UserInfo(name, ("dev", "system:authenticated"))
    ours: list[str] = []
    theirs: list[str] = []

    async with world.served(admin), client_of(control_plane, name, "dev") as client:
        for number, (kind, content) in enumerate(fields):
            where = namespace if kind.startswith("Role") else ""
            metadata: JSONObject = {"name": f"{namespace}-new-{number}", **({"namespace": where} if where else {})}
            new: JSONObject = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata, **content}
            refused = escalation(world.authorizer, RoleWrite(jane, PLURALS[kind], new, namespace=where))
            ours.append(f"{refused.code} {refused.message}" if refused else "")
            try:
                await client.create(from_json(KINDS[kind], new), dry_run=True)
                theirs.append("")
            except APIError as error:
                theirs.append(f"{error.code} {error.status.message}")

    assert ours == theirs
    assert "" in ours


async def test_impersonation_is_allowed_and_refused_alike(
    control_plane: ControlPlane, admin: Client, namespace: str
) -> None:
    world = World(f"{namespace}-")
    name = f"{namespace}-jane"
    authentication = "authentication.k8s.io"
    world.role("older", rule("impersonate", "core", "users groups", "bob g"))
    world.role(
        "newer",
        rule("impersonate:user-info", authentication, "users groups", "carol system:masters h"),
        rule("impersonate:user-info", authentication, "userextras/example.com/scope", "a"),
        rule("impersonate-on:user-info:create", authentication, "selfsubjectreviews"),
    )
    world.bind("older", "older", user(name))
    world.bind("newer", "newer", user(name))
    deed = Attributes(
        UserInfo(name, ("dev", "system:authenticated")), "create", authentication, "v1", "selfsubjectreviews"
    )
    impersonator = Impersonator(world.authorizer)
    wanted = [
        Impersonation(user="alice"),
        Impersonation(user="carol"),
        Impersonation(user="carol", groups=["h"]),
        Impersonation(user="carol", groups=["system:masters"]),
        Impersonation(user="carol", extra={"example.com/scope": ["a"]}),
        Impersonation(user="carol", extra={"example.com/scope": ["b"]}),
        Impersonation(user="carol", extra={"scope": ["a"]}),
        Impersonation(user="bob", groups=["g"]),
        Impersonation(user="bob", uid="7"),
        Impersonation(user="alice"),
        Impersonation(user=f"system:serviceaccount:{namespace}:robot"),
        Impersonation(user="system:node:n1"),
    ]
    config = Config.from_kubeconfig_text(control_plane.add_user(name, ["dev"]).kubeconfig)
    ours: list[JSONValue] = []
    theirs: list[JSONValue] = []

    async with world.served(admin):
        for identity in wanted:
            try:
                found = impersonator.impersonate(identity.headers(), deed)
                ours.append(found.user.document() if found else None)
            except StatusError as error:
                ours.append(error.message)
            async with Client(replace(config, impersonate=identity)) as client:
                try:
                    theirs.append(at(sent(await client.create(SelfSubjectReview())), "status", "userInfo"))
                except Forbidden as error:
                    theirs.append(error.status.message)

    assert ours == theirs
    assert {type(result) for result in ours} == {str, dict}


async def test_rules_reviews_are_alike(control_plane: ControlPlane, admin: Client, namespace: str) -> None:
    world = World(f"{namespace}-")
    name = f"{namespace}-jane"
    world.role("some", rule("get", "core", "pods", "a"), rule("get", urls="/x"), rule("list", "apps", "deployments"))
    world.role("local", rule("delete", "core", "pods"), namespace=namespace)
    world.bind("some", "some", user(name))
    world.bind("local", "local", user(name), namespace=namespace, kind="Role")
    review: JSONObject = {"spec": {"namespace": namespace}}

    async with world.served(admin), client_of(control_plane, name) as client:
        theirs = sent(await client.create(from_json(SelfSubjectRulesReview, review)))

    ours = self_subject_rules_review(world.authorizer, review, UserInfo(name, ("system:authenticated",)))
    for field_name in ("resourceRules", "nonResourceRules"):
        # In the order of a Go map there.
        assert sorted(map(str, items(theirs, "status", field_name))) == sorted(
            map(str, items(ours, "status", field_name))
        )


async def test_a_refusal_names_user_verb_resource_and_scope(control_plane: ControlPlane, namespace: str) -> None:
    async with client_of(control_plane, "nobody") as client:
        with pytest.raises(Forbidden) as one:
            await client.get(Pod, "web", namespace=namespace)
        with pytest.raises(Forbidden) as all_of_them:
            await client.list(Pod)

    assert one.value.status.message == (
        'pods "web" is forbidden: User "nobody" cannot get resource "pods" in API group "" '
        f'in the namespace "{namespace}"'
    )
    assert all_of_them.value.status.message == (
        'pods is forbidden: User "nobody" cannot list resource "pods" in API group "" at the cluster scope'
    )
