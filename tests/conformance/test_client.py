"""Every verb of the client, on every control plane."""

from __future__ import annotations

import asyncio
import copy
import logging
from datetime import UTC, datetime
from typing import Annotated

import pytest
from msgspec.structs import replace
from tests.conformance.custom_kinds import Kind, version

from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.apps.v1 import Deployment, DeploymentSpec
from kubewright.api.authorization.v1 import ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec
from kubewright.api.codec import decode, from_json, origin
from kubewright.api.core.v1 import (
    ConfigMap,
    Container,
    EphemeralContainer,
    Node,
    Pod,
    PodSpec,
    PodTemplateSpec,
    Secret,
    ServiceAccount,
)
from kubewright.api.dynamic import Dynamic, metadata_only
from kubewright.api.markers import JSONValue, ListMap
from kubewright.api.meta import Condition, LabelSelector, ObjectMeta
from kubewright.api.model import Model
from kubewright.api.resources import Resource, resource
from kubewright.client import Client, Config, JSONPatch, MergePatch, StrategicMergePatch, patch_from
from kubewright.client.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NoSuchKind,
    NotFound,
    UnsupportedMediaType,
)
from kubewright.client.wait import Field, WaitTimeout, available, deleted, established, exists, ready
from kubewright.controlplane import ControlPlane
from kubewright.testing.namespaces import unique_name


class Part(Model):
    name: str
    weight: int | None = None


class WidgetSpec(Model):
    size: int = 1
    parts: Annotated[list[Part], ListMap("name")] = []


class WidgetStatus(Model):
    size: int = 0
    conditions: list[Condition] = []


@resource("example.com/v1")
class Widget(Resource[WidgetSpec, WidgetStatus]):
    """Knows less than what is stored."""


AnyWidget = Dynamic.of("example.com/v1", "Widget")


def config_map(name: str = "settings", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name), data=data)


def pod(name: str, **labels: str) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=PodSpec(containers=[Container(name="main", image="nginx")]),
    )


def deployment(replicas: int = 1) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name="web"),
        spec=DeploymentSpec(
            replicas=replicas,
            selector=LabelSelector(match_labels={"app": "web"}),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels={"app": "web"}),
                spec=PodSpec(containers=[Container(name="main", image="nginx")]),
            ),
        ),
    )


async def test_a_created_object_can_be_read(client: Client) -> None:
    created = await client.create(config_map(color="green"))
    assert created.metadata.uid
    assert created.metadata.namespace == client.namespace
    assert await client.get(ConfigMap, "settings") == created
    assert await client.get(ConfigMap, created.key) == created


async def test_get_raises_and_find_returns_none(client: Client) -> None:
    with pytest.raises(NotFound, match=rf'^get ConfigMap {client.namespace}/nothing: configmaps "nothing" not found$'):
        await client.get(ConfigMap, "nothing")
    assert await client.find(ConfigMap, "nothing") is None


async def test_creating_twice_is_an_error(client: Client) -> None:
    await client.create(config_map())
    with pytest.raises(
        AlreadyExists, match=f'^create ConfigMap {client.namespace}/settings: .*"settings" already exists'
    ):
        await client.create(config_map())


async def test_a_generated_name_comes_back(client: Client) -> None:
    created = await client.create(ConfigMap(metadata=ObjectMeta(generate_name="settings-")))
    assert created.metadata.name.startswith("settings-")
    assert await client.find(ConfigMap, created.metadata.name) == created


async def test_an_update_of_something_that_changed_meanwhile_is_a_conflict(client: Client) -> None:
    first = await client.create(config_map(a="1"))
    second = copy.deepcopy(first)
    first.data["a"] = "2"
    await client.update(first)
    second.data["a"] = "3"
    with pytest.raises(Conflict, match="the object has been modified"):
        await client.update(second)


@pytest.mark.usefixtures("widgets")
async def test_an_update_keeps_what_the_type_does_not_know(client: Client) -> None:
    content = {"spec": {"size": 1, "novel": True, "parts": [{"name": "a", "novel": 1}, {"name": "b", "novel": 2}]}}
    await client.create(AnyWidget(metadata=ObjectMeta(name="w"), content=content))  # type: ignore[arg-type]
    widget = await client.get(Widget, "w")
    widget.spec.size = 5
    widget.spec.parts = [Part(name="c"), Part(name="b", weight=7)]
    await client.update(widget)
    assert (await client.get(AnyWidget, "w"))["spec"] == {
        "size": 5,
        "novel": True,
        "parts": [{"name": "c"}, {"name": "b", "novel": 2, "weight": 7}],
    }


@pytest.mark.usefixtures("widgets")
async def test_a_manifest_keeps_what_the_type_does_not_know(client: Client) -> None:
    spec: dict[str, JSONValue] = {"novel": True, "parts": [{"name": "a", "novel": 1}]}
    created = await client.create(from_json(Widget, {"metadata": {"name": "created"}, "spec": spec}))
    applied = await client.apply(from_json(Widget, {"metadata": {"name": "applied"}, "spec": spec}))
    assert [(await client.get(AnyWidget, each))["spec"] for each in (created.key, applied.key)] == [spec, spec]
    applied.spec.size = 2
    await client.apply(applied)
    assert (await client.get(AnyWidget, "applied"))["spec"] == {**spec, "size": 2}
    manifest = from_json(Widget, {"metadata": {"name": "created"}, "spec": {"novel": False}})
    manifest.metadata.resource_version = created.metadata.resource_version
    await client.update(manifest)
    assert (await client.get(AnyWidget, "created"))["spec"] == {"novel": False}
    with pytest.raises(ValueError, match="was not read from a server"):
        await client.patch(manifest)


@pytest.mark.usefixtures("widgets")
async def test_a_patch_sends_the_difference_and_nothing_when_there_is_none(client: Client) -> None:
    await client.create(AnyWidget(metadata=ObjectMeta(name="w"), content={"spec": {"size": 1, "novel": True}}))
    widget = await client.get(Widget, "w")
    untouched = await client.patch(widget)
    assert untouched.metadata.resource_version == widget.metadata.resource_version
    widget.spec.size = 2
    widget.metadata.labels["a"] = "b"
    patched = await client.patch(widget)
    assert (patched.spec.size, patched.metadata.labels) == (2, {"a": "b"})
    assert (await client.get(AnyWidget, "w"))["spec"] == {"size": 2, "novel": True}


async def test_a_locked_patch_notices_any_change(client: Client) -> None:
    created = await client.create(config_map(a="1", b="1"))
    base = copy.deepcopy(created)
    created.data["a"] = "2"
    del created.data["b"]
    await client.patch(base, MergePatch({"data": {"c": "3"}}))
    with pytest.raises(Conflict):
        await client.patch(created, patch_from(base), lock=True)
    patched = await client.patch(created, patch_from(base))
    assert patched.data == {"a": "2", "c": "3"}


def condition(type_: str) -> Condition:
    return Condition(type=type_, status="True", reason="Done", last_transition_time=datetime(2026, 1, 2, tzinfo=UTC))


@pytest.mark.usefixtures("widgets")
@pytest.mark.parametrize("base", [None, "copy"])
async def test_what_others_put_into_lists_meanwhile_survives_a_patch(client: Client, base: str | None) -> None:
    owners = [(await client.create(config_map(name))).as_owner(controller=False) for name in ("first", "second")]
    await client.create(Widget(metadata=ObjectMeta(name="w"), spec=WidgetSpec(parts=[Part(name="a")])))
    ours = await client.get(Widget, "w")
    before = None if base is None else patch_from(copy.deepcopy(ours))

    theirs = await client.get(Widget, "w")
    theirs.metadata.finalizers = ["example.com/theirs"]
    theirs.metadata.owner_references = [owners[0]]
    theirs.metadata.labels = {"theirs": "1"}
    theirs.spec.parts.append(Part(name="theirs"))
    theirs = await client.update(theirs)
    theirs.status.conditions = [condition("Theirs")]
    await client.status.update(theirs)

    ours.metadata.finalizers = ["example.com/ours"]
    ours.metadata.owner_references = [owners[1]]
    ours.metadata.labels = {"ours": "2"}
    ours.spec.parts = [Part(name="a", weight=3)]
    ours.status.conditions = [condition("Ours")]
    patched = await client.patch(ours, before)
    assert patched == await client.get(Widget, "w")
    patched = await client.status.patch(ours, before)
    assert patched == await client.get(Widget, "w")
    assert sorted(patched.metadata.finalizers) == ["example.com/ours", "example.com/theirs"]
    assert {owner.name for owner in patched.metadata.owner_references} == {"first", "second"}
    assert patched.metadata.labels == {"ours": "2", "theirs": "1"}
    assert patched.spec.parts == [Part(name="a", weight=3), Part(name="theirs")]
    assert sorted(each.type for each in patched.status.conditions) == ["Ours", "Theirs"]
    # None of it is done twice.
    assert await client.status.patch(patched) is patched

    patched.metadata.finalizers.remove("example.com/ours")
    await client.patch(Widget, "w", MergePatch({"metadata": {"finalizers": ["example.com/ours", "example.com/x"]}}))
    assert (await client.patch(patched)).metadata.finalizers == ["example.com/x"]
    await client.patch(Widget, "w", MergePatch({"metadata": {"finalizers": None}}))


async def test_a_finalizer_of_a_built_in_kind_survives_as_well(client: Client) -> None:
    ours, theirs = await client.create(config_map()), await client.get(ConfigMap, "settings")
    theirs.metadata.finalizers.append("example.com/theirs")
    await client.patch(theirs)
    partial = await client.get(metadata_only(ConfigMap), "settings")
    ours.metadata.finalizers.append("example.com/ours")
    patched = await client.patch(ours)
    assert sorted(patched.metadata.finalizers) == ["example.com/ours", "example.com/theirs"]
    partial.metadata.finalizers.remove("example.com/theirs")
    assert (await client.patch(partial)).metadata.finalizers == ["example.com/ours"]
    patched.metadata.finalizers.clear()
    assert (await client.patch(patched)).metadata.finalizers == []


@pytest.mark.parametrize("lock", [True, False])
async def test_a_patch_locks_as_requested(client: Client, lock: bool) -> None:
    ours, theirs = await client.create(config_map()), await client.get(ConfigMap, "settings")
    theirs.metadata.finalizers.append("example.com/theirs")
    await client.patch(theirs)
    ours.metadata.finalizers.append("example.com/ours")
    if lock:
        with pytest.raises(Conflict, match="the object has been modified"):
            await client.patch(ours, lock=True)
    else:
        assert (await client.patch(ours, lock=False)).metadata.finalizers == ["example.com/ours"]
    await client.patch(ConfigMap, "settings", MergePatch({"metadata": {"finalizers": None}}))


async def test_every_kind_of_patch_is_accepted(client: Client) -> None:
    await client.create(deployment())
    by_json = await client.patch(
        Deployment, "web", JSONPatch([{"op": "replace", "path": "/spec/replicas", "value": 2}])
    )
    by_merge = await client.patch(by_json, MergePatch({"metadata": {"labels": {"a": "b"}}}))
    strategic = StrategicMergePatch(
        {"spec": {"template": {"spec": {"containers": [{"name": "side", "image": "busybox"}]}}}}
    )
    by_strategic = await client.patch(by_merge, strategic)
    assert by_strategic.spec.replicas == 2
    assert by_strategic.metadata.labels == {"a": "b"}
    assert [container.name for container in by_strategic.spec.template.spec.containers] == ["side", "main"]


async def test_a_json_patch_whose_test_fails_changes_nothing(client: Client) -> None:
    await client.create(config_map(a="1"))
    patch = JSONPatch(
        [{"op": "test", "path": "/data/a", "value": "9"}, {"op": "replace", "path": "/data/a", "value": "2"}]
    )
    with pytest.raises(Invalid):
        await client.patch(ConfigMap, "settings", patch)
    assert (await client.get(ConfigMap, "settings")).data == {"a": "1"}


@pytest.mark.usefixtures("widgets")
async def test_custom_resources_take_no_strategic_patch(client: Client) -> None:
    await client.create(Widget(metadata=ObjectMeta(name="w"), spec=WidgetSpec()))
    with pytest.raises(UnsupportedMediaType):
        await client.patch(Widget, "w", StrategicMergePatch({"spec": {"size": 2}}))


async def test_apply_owns_the_fields_that_were_set_and_releases_the_others(client: Client) -> None:
    await client.apply(config_map(a="1", b="1"), field_manager="one")
    applied = await client.apply(config_map(a="1"), field_manager="one")
    assert applied.data == {"a": "1"}


async def test_apply_conflicts_with_another_manager_unless_forced(client: Client) -> None:
    await client.apply(config_map(a="1"), field_manager="one")
    with pytest.raises(Conflict, match=r'conflict with "one": \.data\.a'):
        await client.apply(config_map(a="2"), field_manager="two")
    forced = await client.apply(config_map(a="2"), field_manager="two", force=True)
    assert forced.data == {"a": "2"}
    assert {entry.manager for entry in forced.metadata.managed_fields} == {"two"}


async def test_an_object_that_was_read_can_be_applied(client: Client) -> None:
    read = await client.create(config_map(a="1"))
    read.data["a"] = "2"
    assert (await client.apply(read, force=True)).data == {"a": "2"}


async def test_a_dry_run_changes_nothing(client: Client) -> None:
    dry = await client.create(config_map(), dry_run=True)
    assert dry.metadata.uid
    assert await client.find(ConfigMap, "settings") is None
    created = await client.create(config_map())
    await client.delete(created, dry_run=True)
    assert await client.find(ConfigMap, "settings") == created


async def test_strict_validation_refuses_unknown_fields(client: Client) -> None:
    content = {"data": {"a": "b"}, "daat": {}}
    typo = Dynamic.of("v1", "ConfigMap")(metadata=ObjectMeta(name="x"), content=content)  # type: ignore[arg-type]
    with pytest.raises(BadRequest, match='unknown field "daat"'):
        await client.create(typo, field_validation="Strict")


async def test_a_warning_of_the_server_is_logged_once(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    typo = Dynamic.of("v1", "ConfigMap")
    with caplog.at_level(logging.WARNING, "kubewright.client"):
        for name in ("x", "y"):
            await client.create(typo(metadata=ObjectMeta(name=name), content={"daat": {}}), field_validation="Warn")
    expected = f'create ConfigMap {client.namespace}/x: unknown field "daat"'
    assert [record.getMessage() for record in caplog.records] == [expected]


async def test_an_invalid_object_names_its_fields(client: Client) -> None:
    broken = pod("web")
    broken.spec.containers[0].name = "Not a label"
    with pytest.raises(Invalid) as caught:
        await client.create(broken)
    assert [cause.field for cause in caught.value.status.causes] == ["spec.containers[0].name"]
    assert str(caught.value).startswith(f'create Pod {client.namespace}/web: Pod "web" is invalid: ')


async def test_a_list_is_paged_and_consistent(client: Client) -> None:
    for number in range(7):
        await client.create(config_map(f"c-{number}"))
    names = [f"c-{number}" for number in range(7)]
    selected = client.list(ConfigMap, page_size=3, fields="metadata.name!=kube-root-ca.crt")
    pages = [page async for page in selected.pages()]
    assert [[item.metadata.name for item in page.items] for page in pages] == [names[:3], names[3:6], names[6:]]
    assert len({page.metadata.resource_version for page in pages}) == 1
    assert [item.metadata.name async for item in selected] == names
    assert [item.metadata.name for item in await selected] == names


async def test_lists_are_selected_by_labels_and_fields(client: Client) -> None:
    for name, tier in (("a", "front"), ("b", "back"), ("c", "none")):
        await client.create(pod(name, tier=tier))
    await client.create(pod("d"))

    async def names(**selection: object) -> list[str]:
        return [item.metadata.name for item in await client.list(Pod, **selection)]  # type: ignore[arg-type]

    assert await names(labels={"tier": "front"}) == ["a"]
    assert await names(labels={"tier": ["front", "back"]}) == ["a", "b"]
    assert await names(labels={"tier": True}) == ["a", "b", "c"]
    assert await names(labels={"tier": False}) == ["d"]
    assert await names(labels="tier notin (front),tier") == ["b", "c"]
    assert await names(labels=LabelSelector(match_labels={"tier": "back"})) == ["b"]
    assert await names(fields={"metadata.name": "c"}) == ["c"]


async def test_a_selector_that_cannot_be_parsed_is_a_bad_request(client: Client) -> None:
    with pytest.raises(BadRequest, match=f"^list ConfigMap in {client.namespace}: "):
        await client.list(ConfigMap, labels="a in (")


async def test_metadata_can_be_had_without_the_body(client: Client) -> None:
    secret = await client.create(Secret(metadata=ObjectMeta(name="s", labels={"a": "b"}), string_data={"p": "hidden"}))
    view = metadata_only(Secret)
    seen = await client.get(view, "s")
    assert seen.metadata == secret.metadata
    assert b"hidden" not in (origin(seen) or b"")
    assert b'"data"' not in (origin(seen) or b"")
    listed = await client.list(view, labels={"a": "b"})
    assert [item.metadata.uid for item in listed] == [secret.metadata.uid]
    seen.metadata.labels["c"] = "d"
    assert (await client.patch(seen)).metadata.labels == {"a": "b", "c": "d"}
    await client.delete(seen)
    assert await client.find(Secret, "s") is None


async def test_a_table_has_the_columns_of_kubectl(client: Client) -> None:
    await client.create(pod("web"))
    table = await client.table(Pod)
    assert [column.name for column in table.column_definitions][:5] == ["Name", "Ready", "Status", "Restarts", "Age"]
    assert table.column("Name") == ["web"]
    assert table.rows[0].object is not None
    assert table.rows[0].object.metadata.name == "web"


async def test_delete_checks_preconditions(client: Client) -> None:
    created = await client.create(config_map())
    with pytest.raises(Conflict):
        await client.delete(created, uid="11111111-2222-3333-4444-555555555555")
    with pytest.raises(Conflict):
        await client.delete(ConfigMap, "settings", resource_version="1")
    await client.delete(created, uid=created.metadata.uid, resource_version=created.metadata.resource_version)
    assert await client.find(ConfigMap, "settings") is None


async def test_deleting_an_absent_object_can_be_ignored(client: Client) -> None:
    with pytest.raises(NotFound):
        await client.delete(ConfigMap, "nothing")
    await client.delete(ConfigMap, "nothing", missing_ok=True)


async def test_delete_all_deletes_what_matches(client: Client) -> None:
    for name, keep in (("a", "no"), ("b", "yes"), ("c", "no")):
        await client.create(ConfigMap(metadata=ObjectMeta(name=name, labels={"keep": keep})))
    await client.delete_all(ConfigMap, labels={"keep": "no"})
    assert [item.metadata.name for item in await client.list(ConfigMap, labels={"keep": True})] == ["b"]


async def test_delete_all_across_namespaces_is_refused(admin: Client) -> None:
    with pytest.raises(ValueError, match=r"delete_all\(ConfigMap\) needs namespace="):
        await admin.delete_all(ConfigMap)


async def test_orphans_survive_their_owner(client: Client) -> None:
    await client.create(deployment())
    from kubewright.api.apps.v1 import ReplicaSet

    owned = await client.wait_for(await client.get(Deployment, "web"), Field("status.replicas").equals(1))
    assert owned is not None
    await client.delete(owned, propagation="Orphan")
    await client.wait_for(owned, deleted)
    (left,) = await client.list(ReplicaSet)
    assert left.metadata.owner_references == []


@pytest.mark.usefixtures("widgets")
async def test_status_is_written_by_its_own_endpoint(client: Client) -> None:
    widget = await client.create(Widget(metadata=ObjectMeta(name="w"), spec=WidgetSpec(), status=WidgetStatus(size=9)))
    assert widget.status.size == 0
    widget.status.size = 3
    widget.spec.size = 8
    updated = await client.status.update(widget)
    assert (updated.status.size, updated.spec.size) == (3, 1)
    updated.status.size = 4
    patched = await client.status.patch(updated)
    assert patched.status.size == 4
    patched.status.size = 5
    applied = await client.status.apply(patched, force=True)
    assert (applied.status.size, applied.spec.size) == (5, 1)
    assert (await client.status.get(Widget, "w")).status.size == 5


@pytest.mark.usefixtures("widgets")
async def test_an_update_of_the_object_leaves_its_status_alone(client: Client) -> None:
    widget = await client.create(Widget(metadata=ObjectMeta(name="w"), spec=WidgetSpec()))
    widget.status.size = 3
    widget.spec.size = 2
    updated = await client.update(widget)
    assert (updated.spec.size, updated.status.size) == (2, 0)
    assert (await client.status.patch(widget)).status.size == 3


@pytest.mark.usefixtures("widgets")
@pytest.mark.parametrize("kind", [Widget, AnyWidget])
async def test_a_status_that_would_be_lost_is_refused(client: Client, kind: type[Widget | Dynamic]) -> None:
    await client.create(Widget(metadata=ObjectMeta(name="w"), spec=WidgetSpec()))
    widget = await client.get(kind, "w")
    if isinstance(widget, Widget):
        widget.status.size = 3
    else:
        widget["status"] = {"size": 3}
    with pytest.raises(ValueError, match=r"only the status of Widget .*/w was changed, .* use client\.status\.patch"):
        await client.patch(widget)
    with pytest.raises(ValueError, match=r"only the status of Widget .*/w was changed, .* use client\.status\.update"):
        await client.update(widget)
    await client.status.update(widget)
    assert (await client.get(Widget, "w")).status.size == 3


async def test_a_status_without_an_endpoint_of_its_own_is_written_with_the_rest(client: Client, kind: Kind) -> None:
    await kind.define(version())
    created = await client.create(
        Dynamic.of(f"{kind.group}/v1", "Thing")(metadata=ObjectMeta(name="t"), content={"spec": {}})
    )
    created["status"] = {"size": 1}
    patched = await client.patch(created)
    patched["status"] = {"size": 2}
    assert (await client.update(patched)).get("status", "size") == 2


@pytest.mark.usefixtures("widgets")
async def test_anything_that_scales_is_scaled(client: Client) -> None:
    await client.create(Widget(metadata=ObjectMeta(name="w"), spec=WidgetSpec()))
    await client.create(deployment())
    for kind, name in ((Widget, "w"), (Deployment, "web")):
        scaled = await client.scale(kind, name, replicas=3)
        assert scaled.spec.replicas == 3
        assert (await client.get_scale(kind, name)).spec.replicas == 3
    assert (await client.get(Widget, "w")).spec.size == 3


async def test_a_pod_can_be_bound_and_evicted(client: Client, admin: Client) -> None:
    node = await admin.create(Node(metadata=ObjectMeta(generate_name="node-")))
    created = await client.create(pod("web"))
    await client.bind(created, node.metadata.name)
    assert (await client.get(Pod, "web")).spec.node_name == node.metadata.name
    await client.evict("web", grace_period=0, dry_run=True)
    assert (await client.get(Pod, "web")).metadata.deletion_timestamp is None
    await client.evict("web", grace_period=0)
    assert await client.wait_for(created, deleted) is None
    await admin.delete(node)


async def test_a_service_account_token_speaks_for_the_account(client: Client, control_plane: ControlPlane) -> None:
    await client.create(ServiceAccount(metadata=ObjectMeta(name="robot")))
    request = await client.token("robot", expiration_seconds=600)
    assert request.status.token is not None
    assert request.status.token.count(".") == 2
    robot = pod("holder")
    robot.spec.service_account_name = "robot"
    holder = await client.create(robot)
    bound = await client.token("robot", bound_to=holder, audiences=["vault"])
    assert bound.spec.audiences == ["vault"]
    assert bound.spec.bound_object_ref is not None
    assert bound.spec.bound_object_ref.uid == holder.metadata.uid


async def test_any_other_subresource_can_be_used_by_name(client: Client) -> None:
    created = await client.create(pod("web"))
    created.spec.ephemeral_containers = [EphemeralContainer(name="debug", image="busybox")]
    debugged = await client.subresource("ephemeralcontainers").update(created)
    assert [container.name for container in debugged.spec.ephemeral_containers] == ["debug"]


async def test_a_review_is_answered_in_its_status(admin: Client) -> None:
    review = SelfSubjectAccessReview(
        spec=SelfSubjectAccessReviewSpec(resource_attributes=ResourceAttributes(verb="list", resource="pods"))
    )
    assert (await admin.create(review)).status.allowed


async def test_a_user_without_rights_gets_the_missing_right(control_plane: ControlPlane, namespace: str) -> None:
    config = Config.from_kubeconfig_text(control_plane.add_user("eve", ["guests"]).kubeconfig)
    async with Client(config) as client:
        with pytest.raises(Forbidden) as caught:
            await client.list(Pod, namespace=namespace)
    assert str(caught.value) == (
        f'list Pod in {namespace}: pods is forbidden: User "eve" cannot list resource "pods" '
        f'in API group "" in the namespace "{namespace}"'
    )


async def test_impersonation_is_sent(control_plane: ControlPlane) -> None:
    from kubewright.api.authentication.v1 import SelfSubjectReview
    from kubewright.client.config.impersonation import Impersonation

    config = Config.from_kubeconfig_text(control_plane.kubeconfig())
    someone = replace(config, impersonate=Impersonation(user="eve", groups=("a", "b")))
    async with Client(someone) as client:
        refusal = (await client.create(SelfSubjectReview())).status.user_info
    assert refusal is not None
    assert (refusal.username, refusal.groups[:2]) == ("eve", ["a", "b"])


async def test_a_view_of_a_namespace_stays_there(client: Client) -> None:
    await client.create(config_map())
    assert {item.metadata.namespace for item in await client.list(ConfigMap)} == {client.namespace}
    with pytest.raises(ValueError, match="stays in the namespace"):
        await client.get(ConfigMap, "settings", namespace="default")


@pytest.mark.usefixtures("widgets")
async def test_kinds_without_a_type_are_found_by_discovery(client: Client) -> None:
    await client.create(AnyWidget(metadata=ObjectMeta(name="w"), content={"spec": {"size": 1}}))
    (found,) = await client.list(AnyWidget)
    assert found.get("spec", "size") == 1
    found["spec"] = {"size": 2}
    assert (await client.update(found)).get("spec", "size") == 2
    refusal = r"no such kind, Gadget in example.com/v1 \(kinds there: .*Widget\): is its Custom.* installed"
    with pytest.raises(NoSuchKind, match=refusal):
        await client.list(Dynamic.of("example.com/v1", "Gadget"))


async def test_waiting_ends_when_the_expectation_holds(client: Client) -> None:
    created = await client.create(deployment(replicas=0))
    settled = await client.wait_for(created, available)
    assert settled is not None
    assert settled.status.observed_generation == settled.metadata.generation
    await client.delete(settled)
    assert await client.wait_for(Deployment, "web", deleted | ~exists) is None


async def test_a_wait_that_times_out_reports_the_last_state(client: Client) -> None:
    await client.create(pod("web"))
    refusal = r"/web: expected Ready=True, which did not come within 1 s; last seen: phase=Pending"
    with pytest.raises(WaitTimeout, match=refusal):
        await client.wait_for(Pod, "web", ready, timeout=1)


async def test_the_log_of_an_absent_container_is_an_error(client: Client) -> None:
    """No control plane here has a kubelet, so that a pod that runs nowhere has an empty log."""
    await client.create(pod("web"))
    assert [line async for line in client.logs("web", tail=3)] == []
    with pytest.raises(BadRequest, match=f"^get Pod/log {client.namespace}/web: container nothing is not valid"):
        await anext(client.logs("web", container="nothing"))


async def test_any_object_of_the_server_survives_a_typed_round_trip(client: Client) -> None:
    read = await client.create(deployment())
    raw = origin(read)
    assert raw is not None
    assert decode(Deployment, raw) == read
    updated: Deployment | None = None
    async with asyncio.timeout(30):
        while updated is None:
            try:
                updated = await client.update(read)
            except Conflict:  # its controller writes, too
                read = await client.get(Deployment, "web")
    assert updated.metadata.resource_version == read.metadata.resource_version


@pytest.mark.parametrize("is_typed", [True, False])
async def test_a_kind_can_be_used_as_soon_as_its_definition_is_established(
    admin: Client, namespace: str, is_typed: bool
) -> None:
    """The endpoints and the discovery of the real server lag behind: the client waits."""
    for number in range(5):
        group = f"{unique_name('soon')}-{number}.example.com"
        api_version = f"{group}/v1"
        if is_typed:
            kind = Dynamic.of(api_version, "Prompt", plural="prompts", namespaced=True)
        else:
            kind = Dynamic.of(api_version, "Prompt")
        names: JSONValue = {"plural": "prompts", "kind": "Prompt"}
        spec: JSONValue = {"group": group, "scope": "Namespaced", "names": names, "versions": [version()]}
        content: JSONValue = {"metadata": {"name": f"prompts.{group}"}, "spec": spec}
        definition = await admin.create(from_json(CustomResourceDefinition, content))
        try:
            await admin.wait_for(definition, established)
            made = await admin.create(kind(metadata=ObjectMeta(name="a", namespace=namespace)))
            assert [each.key for each in await admin.list(kind, namespace=namespace)] == [made.key]
        finally:
            await admin.delete(definition)
