"""Writes: what goes out, where to, and with which options."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from kubewright.api.codec import decode, from_json
from kubewright.api.core.v1 import ConfigMap, Node, Secret
from kubewright.api.dynamic import Dynamic, metadata_only
from kubewright.api.kinds import ObjectKey
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.api.model import Model
from kubewright.api.resources import Resource, resource
from kubewright.client.client import Client
from kubewright.client.config.config import Config
from kubewright.client.errors import AlreadyExists, Conflict, ConnectionLost, DecodeError, Invalid, ProtocolError
from kubewright.client.patch import JSONPatch, MergePatch, StrategicMergePatch, patch_from

if TYPE_CHECKING:
    from tests.client.conftest import ScriptedServer, VirtualTime


class Spec(Model):
    size: int = 1


class AppStatus(Model):
    ready: int = 0


@resource("example.com/v1", namespaced=True)
class App(Resource[Spec, AppStatus]):
    pass


class ListedSpec(Spec):
    args: list[str] = []


@resource("example.com/v1", namespaced=True)
class Listed(Resource[ListedSpec, AppStatus]):
    pass


Widget = Dynamic.of("example.com/v1", "Widget")
PATH = "/apis/example.com/v1/namespaces/shop/apps/a"


def stored(**metadata: JSONValue) -> dict[str, JSONValue]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {"name": "a", "namespace": "shop", "resourceVersion": "7", **metadata},
        "spec": {"size": 1, "novelty": True},
        "status": {"ready": 0},
    }


def read() -> App:
    return decode(App, msgspec.json.encode(stored()))


# create


async def test_create_posts_the_object_and_returns_the_result(client: Client, server: ScriptedServer) -> None:
    server.answers(stored(uid="u-1"), status=201)
    created = await client.create(App(metadata=ObjectMeta(name="a"), spec=Spec(size=1)))

    assert created.metadata.uid == "u-1"
    (sent,) = server.sent
    assert (sent.method, sent.path) == ("POST", "/apis/example.com/v1/namespaces/shop/apps")
    assert sent.query == {"fieldManager": "kubewright"}
    assert sent.header("Content-Type") == sent.header("Accept") == ["application/json"]
    assert sent.json == {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {"name": "a"},
        "spec": {"size": 1},
    }


async def test_create_puts_the_object_into_the_namespace_it_names(client: Client, server: ScriptedServer) -> None:
    server.answers(stored(), status=201)
    server.answers({"metadata": {"name": "n"}}, status=201)
    await client.create(App(metadata=ObjectMeta(name="a", namespace="elsewhere"), spec=Spec()))
    await client.create(Node(metadata=ObjectMeta(name="n")))

    assert [sent.path for sent in server.sent] == [
        "/apis/example.com/v1/namespaces/elsewhere/apps",
        "/api/v1/nodes",
    ]


async def test_an_owned_object_without_a_namespace_is_refused(client: Client, server: ScriptedServer) -> None:
    """The client's own is not that of the owner, and the garbage collector would delete the child there."""
    owner = ConfigMap(metadata=ObjectMeta(name="owner", namespace="elsewhere", uid="u-1")).as_owner()
    child = App(metadata=ObjectMeta(generate_name="a-", owner_references=[owner]), spec=Spec())
    for write in (client.create, client.submit, client.apply):
        with pytest.raises(ValueError, match=r"^App a- has an owner and no namespace: set metadata\.namespace"):
            await write(child)
    assert server.sent == []

    server.answers(stored(), status=201)
    await client.in_namespace("elsewhere").create(child)
    server.answers({"metadata": {"name": "n"}}, status=201)
    of_cluster = Node(metadata=ObjectMeta(name="n", uid="u-2")).as_owner()
    await client.create(Node(metadata=ObjectMeta(name="n", owner_references=[of_cluster])))
    assert [sent.path for sent in server.sent] == ["/apis/example.com/v1/namespaces/elsewhere/apps", "/api/v1/nodes"]


async def test_an_object_is_not_written_away_from_its_owner(client: Client, server: ScriptedServer) -> None:
    """The garbage collector would look for the owner beside the child, and delete the child."""
    owner = ConfigMap(metadata=ObjectMeta(name="owner", namespace="elsewhere", uid="u-1")).as_owner()
    child = decode(App, msgspec.json.encode(stored()))
    child.metadata.owner_references.append(owner)
    for write in (client.create, client.submit, client.apply, client.update, client.patch):
        with pytest.raises(
            ValueError,
            match=r"^App shop/a cannot be owned by ConfigMap elsewhere/owner: they are in different namespaces, "
            r'.* would delete the child; create the child in "elsewhere", or delete it in the cleanup of the owner',
        ):
            await write(child)
    child.metadata.namespace = ""
    with pytest.raises(ValueError, match=r"^App here/a cannot be owned by ConfigMap elsewhere/owner"):
        await client.in_namespace("here").create(child)
    with pytest.raises(
        ValueError, match=r"^Node n cannot be owned by .*: the owner has a namespace and the child has none"
    ):
        await client.create(Node(metadata=ObjectMeta(name="n", owner_references=[owner])))
    with pytest.raises(TypeError, match=r"^Node n: owner_references is a list: write \[owner.as_owner\(\)\]$"):
        await client.create(Node(metadata=ObjectMeta(name="n", owner_references=cast(list[OwnerReference], owner))))
    assert server.sent == []


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        (ObjectMeta(name="a"), "create App shop/a"),
        (ObjectMeta(generate_name="a-"), "create App shop/a-"),
        (ObjectMeta(), "create App in shop"),
    ],
)
async def test_a_refused_creation_names_the_object(
    client: Client, server: ScriptedServer, metadata: ObjectMeta, words: str
) -> None:
    server.refuses(409, "AlreadyExists", "taken")
    with pytest.raises(AlreadyExists, match=f"^{words}: taken$"):
        await client.create(App(metadata=metadata, spec=Spec()))
    server.refuses(409, "AlreadyExists", "taken")
    with pytest.raises(AlreadyExists, match=f"^{words}: taken$"):
        await client.submit(App(metadata=metadata, spec=Spec()))


async def test_submit_sends_what_create_sends_and_does_not_read_the_answer(
    client: Client, server: ScriptedServer
) -> None:
    app = App(metadata=ObjectMeta(name="a"), spec=Spec(size=1))
    server.answers(stored(), status=201)
    await client.create(app)
    server.answers({"metadata": "not what an App has"}, status=201)
    await client.submit(app)

    created, submitted = server.sent
    assert (submitted.method, submitted.path, submitted.query) == (created.method, created.path, created.query)
    assert submitted.json == created.json


@pytest.mark.parametrize("verb", ["create", "submit", "update", "apply"])
async def test_metadata_alone_cannot_be_written_whole(client: Client, server: ScriptedServer, verb: str) -> None:
    partial = metadata_only(ConfigMap)(metadata=ObjectMeta(name="a"))
    with pytest.raises(TypeError, match="ConfigMapMetadata is only metadata: it can be read, patched and deleted"):
        await getattr(client, verb)(partial)

    assert server.sent == []


# update


async def test_update_keeps_what_the_type_does_not_know(client: Client, server: ScriptedServer) -> None:
    server.answers(stored(resourceVersion="8"))
    app = read()
    app.spec.size = 5
    app.status.ready = 9
    updated = await client.update(app)

    assert updated.metadata.resource_version == "8"
    (sent,) = server.sent
    assert (sent.method, sent.path) == ("PUT", PATH)
    assert sent.json == {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {"name": "a", "namespace": "shop", "resourceVersion": "7"},
        "spec": {"size": 5, "novelty": True},
    }


async def test_status_is_updated_at_its_own_endpoint(client: Client, server: ScriptedServer) -> None:
    server.answers(stored())
    app = read()
    app.status.ready = 9
    await client.status.update(app)

    (sent,) = server.sent
    assert (sent.method, sent.path) == ("PUT", f"{PATH}/status")
    assert isinstance(sent.json, dict)
    assert sent.json["status"] == {"ready": 9}


async def test_a_conflict_names_the_update(client: Client, server: ScriptedServer) -> None:
    server.refuses(409, "Conflict", "the object has been modified")
    with pytest.raises(Conflict, match=r"^update App/status shop/a: the object has been modified$"):
        await client.status.update(read())


async def test_a_lost_update_is_not_repeated_and_named(client: Client, server: ScriptedServer) -> None:
    server.fails(ConnectionLost("gone"))
    with pytest.raises(ConnectionLost, match=r"^update App shop/a: gone$"):
        await client.update(read())


# patch


async def test_patch_sends_the_difference_alone(client: Client, server: ScriptedServer) -> None:
    server.answers(stored(resourceVersion="8"))
    app = read()
    app.spec.size = 5
    app.status.ready = 9
    app.metadata.labels["x"] = "y"
    patched = await client.patch(app)

    assert patched.metadata.resource_version == "8"
    (sent,) = server.sent
    assert (sent.method, sent.path) == ("PATCH", PATH)
    assert sent.header("Content-Type") == ["application/merge-patch+json"]
    assert sent.json == {"metadata": {"labels": {"x": "y"}}, "spec": {"size": 5}}


async def test_patching_status_sends_status_alone(client: Client, server: ScriptedServer) -> None:
    server.answers(stored())
    app = read()
    app.spec.size = 5
    app.status.ready = 9
    await client.status.patch(app)

    (sent,) = server.sent
    assert sent.path == f"{PATH}/status"
    assert sent.json == {"status": {"ready": 9}}


async def test_nothing_is_sent_when_nothing_changed(client: Client, server: ScriptedServer) -> None:
    app = read()

    assert await client.patch(app) is app
    assert await client.status.patch(app) is app
    assert await client.patch(app, patch_from(copy.deepcopy(app)), lock=True) is app
    assert server.sent == []


async def test_patching_status_sends_nothing_of_another_change(client: Client, server: ScriptedServer) -> None:
    changed_spec = read()
    changed_spec.spec.size = 5

    assert await client.status.patch(changed_spec) is changed_spec
    assert server.sent == []


async def test_a_change_of_status_alone_is_refused_where_it_would_not_be_written(
    client: Client, server: ScriptedServer
) -> None:
    app = read()
    app.status.ready = 9

    words = "only the status of App shop/a was changed, and {0} does not write it: use client.status.{0}\\(obj\\)$"
    with pytest.raises(ValueError, match=words.format("patch")):
        await client.patch(app)
    with pytest.raises(ValueError, match=words.format("patch")):
        await client.patch(app, patch_from(read()), lock=True)
    with pytest.raises(ValueError, match=words.format("update")):
        await client.update(app)
    of_a_list = decode(App, b'{"metadata":{"name":"a","namespace":"shop"},"spec":{"size":1}}')
    of_a_list.status.ready = 9
    with pytest.raises(ValueError, match=words.format("update")):
        await client.update(of_a_list)
    assert server.sent == []


@pytest.mark.parametrize("note", ['"a < b"', '"a \\u003c b"', "1.50"])
async def test_a_change_of_status_alone_is_seen_however_the_server_writes_its_json(
    client: Client, server: ScriptedServer, note: str
) -> None:
    """Go escapes < and > and &."""
    server.answers(
        {"resources": [{"name": each, "kind": "Widget", "namespaced": True} for each in ("widgets", "widgets/status")]}
    )
    body = f'{{"metadata":{{"name":"a","namespace":"shop"}},"spec":{{"note":{note}}},"status":{{"ready":0}}}}'
    widget = decode(Widget, body.encode())
    widget["status"] = {"ready": 9}
    for write in (client.patch, client.update):
        with pytest.raises(ValueError, match="only the status of Widget shop/a was changed"):
            await write(widget)
    assert len(server.sent) == 1


async def test_a_status_that_was_changed_beside_the_rest_is_left_to_be_sent(
    client: Client, server: ScriptedServer
) -> None:
    for _ in range(3):
        server.answers(stored(resourceVersion="8"))
    app = read()
    app.spec.size = 5
    app.status.ready = 9

    assert (await client.patch(app)).status.ready == 0
    assert (await client.update(app)).status.ready == 0
    await client.status.patch(app)
    assert server.sent[2].json == {"status": {"ready": 9}}


async def test_an_object_that_was_not_read_has_no_changed_status(client: Client, server: ScriptedServer) -> None:
    server.answers(stored(resourceVersion="8"))
    app = App(metadata=ObjectMeta(name="a", resource_version="7"), spec=Spec(), status=AppStatus(ready=9))

    assert (await client.update(app)).status.ready == 0


async def test_patch_from_sends_the_difference_to_another_copy(client: Client, server: ScriptedServer) -> None:
    server.answers(stored())
    server.answers(stored())
    server.answers(stored())
    app = read()
    before = copy.deepcopy(app)
    app.spec.size = 5
    app.status.ready = 9
    await client.patch(app, patch_from(before))
    await client.patch(app, patch_from(before), lock=True)
    await client.status.patch(app, patch_from(before), lock=True)

    assert [sent.json for sent in server.sent] == [
        {"spec": {"size": 5}},
        {"spec": {"size": 5}, "metadata": {"resourceVersion": "7"}},
        {"status": {"ready": 9}, "metadata": {"resourceVersion": "7"}},
    ]


def changed_list(**metadata: JSONValue) -> App:
    """Read with a finalizer of another controller, to which ours was added."""
    app = decode(App, msgspec.json.encode(stored(finalizers=["a"], uid="u-1", **metadata)))
    app.metadata.finalizers.append("ours")
    return app


def modified(server: ScriptedServer) -> None:
    server.refuses(409, "Conflict", "the object has been modified")


async def test_a_list_goes_with_the_revision_that_it_was_read_in(client: Client, server: ScriptedServer) -> None:
    for _ in range(4):
        server.answers(stored())
    app = read()
    app.spec.size = 2
    await client.patch(app)
    await client.patch(changed_list())
    await client.patch(changed_list(), lock=False)
    emptied = decode(App, msgspec.json.encode(stored(labels={"a": "b"})))
    emptied.metadata.labels.clear()
    await client.patch(emptied)

    assert [sent.json for sent in server.sent] == [
        {"spec": {"size": 2}},
        {"metadata": {"finalizers": ["a", "ours"], "resourceVersion": "7"}},
        {"metadata": {"finalizers": ["a", "ours"]}},
        {"metadata": {"labels": None, "resourceVersion": "7"}},
    ]


async def test_a_change_that_lost_to_another_writer_is_made_again_on_the_current_object(
    client: Client, server: ScriptedServer
) -> None:
    modified(server)
    server.answers(stored(resourceVersion="8", finalizers=["a", "b"], uid="u-1"))
    modified(server)
    server.answers(stored(resourceVersion="9", finalizers=["b"], uid="u-1"))
    server.answers(stored(resourceVersion="10"))
    patched = await client.patch(changed_list())

    assert patched.metadata.resource_version == "10"
    assert [(sent.method, sent.path) for sent in server.sent] == [
        ("PATCH", PATH),
        ("GET", PATH),
        ("PATCH", PATH),
        ("GET", PATH),
        ("PATCH", PATH),
    ]
    assert [sent.json for sent in server.sent[::2]] == [
        {"metadata": {"finalizers": ["a", "ours"], "resourceVersion": "7"}},
        {"metadata": {"finalizers": ["a", "ours", "b"], "resourceVersion": "8"}},
        {"metadata": {"finalizers": ["ours", "b"], "resourceVersion": "9"}},
    ]


async def test_status_is_made_again_on_the_object_and_sent_to_its_endpoint(
    client: Client, server: ScriptedServer
) -> None:
    def conditions(*types: str) -> dict[str, JSONValue]:
        return {"conditions": [{"type": each, "status": "True"} for each in types]}

    app = decode(Widget, msgspec.json.encode({**stored(uid="u-1"), "kind": "Widget", "status": conditions("A")}))
    app["status"] = conditions("A", "Ours")
    app["spec"] = {"size": 9, "args": [1]}
    server.answers({"resources": [{"name": "widgets", "kind": "Widget", "namespaced": True}]})
    modified(server)
    server.answers(
        {**stored(uid="u-1", resourceVersion="8"), "spec": {"args": [2]}, "status": conditions("A", "Theirs")}
    )
    server.answers(stored())
    await client.status.patch(app)

    path = "/apis/example.com/v1/namespaces/shop/widgets/a"
    assert [sent.path for sent in server.sent[1:]] == [f"{path}/status", path, f"{path}/status"]
    assert server.sent[3].json == {"status": conditions("A", "Ours", "Theirs"), "metadata": {"resourceVersion": "8"}}


async def test_nothing_more_is_sent_when_others_did_the_same(client: Client, server: ScriptedServer) -> None:
    modified(server)
    server.answers(stored(resourceVersion="8", finalizers=["a", "ours"], uid="u-1"))
    patched = await client.patch(changed_list())

    assert patched.metadata.resource_version == "8"
    assert len(server.sent) == 2


async def test_what_is_left_of_a_change_without_a_list_needs_no_lock(client: Client, server: ScriptedServer) -> None:
    app = changed_list()
    app.spec.size = 5
    modified(server)
    server.answers(stored(resourceVersion="8", finalizers=["a", "ours"], uid="u-1"))
    server.answers(stored())
    await client.patch(app)

    assert server.sent[2].json == {"spec": {"size": 5}}


def test_a_change_that_loses_to_another_writer_each_time_is_a_conflict(
    client: Client, server: ScriptedServer, virtual_time: VirtualTime
) -> None:
    for revision in range(8, 17):
        modified(server)
        server.answers(stored(resourceVersion=str(revision), uid="u-1"))
    modified(server)

    async def patch() -> None:
        with pytest.raises(Conflict, match=r"^patch App shop/a: the object has been modified$"):
            await client.patch(changed_list())

    virtual_time.run(patch())
    assert [sent.method for sent in server.sent].count("PATCH") == 10
    assert 0.01 * (2**8 - 1) * 0.2 <= virtual_time.elapsed < 0.01 * (2**8 - 1), "the delays grow, each by chance"


@pytest.mark.parametrize("lock", [True, False])
async def test_a_conflict_is_left_to_the_caller_who_said_how_to_lock(
    client: Client, server: ScriptedServer, lock: bool
) -> None:
    modified(server)
    with pytest.raises(Conflict, match=r"^patch App shop/a: the object has been modified$"):
        await client.patch(changed_list(), lock=lock)

    assert len(server.sent) == 1


@pytest.mark.parametrize(
    "there",
    [{"resourceVersion": "7", "uid": "u-1"}, {"resourceVersion": "8", "uid": "u-2"}],
    ids=["another reason", "another object"],
)
async def test_a_conflict_that_a_new_revision_does_not_explain_is_raised(
    client: Client, server: ScriptedServer, there: dict[str, JSONValue]
) -> None:
    server.refuses(409, "Conflict", "quota exceeded at the same time")
    server.answers(stored(**there))
    with pytest.raises(Conflict, match=r"^patch App shop/a: quota exceeded at the same time$"):
        await client.patch(changed_list())


async def test_a_list_without_keys_that_others_changed_too_is_a_conflict(
    client: Client, server: ScriptedServer
) -> None:
    before: dict[str, JSONValue] = {**stored(), "spec": {"size": 1, "args": ["a"]}}
    app = decode(Listed, msgspec.json.encode(before))
    app.spec.args = ["b"]
    modified(server)
    server.answers({**stored(resourceVersion="8"), "spec": {"size": 1, "args": ["c"]}})
    with pytest.raises(
        Conflict, match=r"^patch Listed shop/a: the object has been modified, .* changed spec\.args, too"
    ) as caught:
        await client.patch(app)

    assert caught.value.code == 409
    assert len(server.sent) == 2


async def test_a_change_from_an_unknown_revision_is_made_on_the_current_object(
    client: Client, server: ScriptedServer
) -> None:
    base = App(metadata=ObjectMeta(name="a", namespace="shop", finalizers=["a"]), spec=Spec())
    app = copy.deepcopy(base)
    app.metadata.finalizers = ["ours"]
    server.answers(stored(finalizers=["a", "theirs"]))
    server.answers(stored())
    await client.patch(app, patch_from(base))

    assert [sent.method for sent in server.sent] == ["GET", "PATCH"]
    assert server.sent[1].json == {"metadata": {"finalizers": ["ours", "theirs"], "resourceVersion": "7"}}
    with pytest.raises(ValueError, match=r"^patch App shop/a: lock=True needs the resourceVersion"):
        await client.patch(app, patch_from(base), lock=True)


async def test_an_explicit_patch_has_its_own_lock(client: Client) -> None:
    with pytest.raises(TypeError, match="lock= is for differences"):
        await client.patch(read(), MergePatch({"spec": {}}), lock=True)


@pytest.mark.parametrize(
    ("patch", "content_type"),
    [
        (MergePatch({"spec": {"size": 2}}), "application/merge-patch+json"),
        (JSONPatch([{"op": "remove", "path": "/spec/size"}]), "application/json-patch+json"),
        (StrategicMergePatch({"spec": {}}), "application/strategic-merge-patch+json"),
    ],
)
async def test_a_patch_is_sent_as_it_is(
    client: Client, server: ScriptedServer, patch: MergePatch | JSONPatch | StrategicMergePatch, content_type: str
) -> None:
    server.answers(stored())
    server.answers(stored())
    await client.patch(read(), patch)
    await client.patch(App, "a", patch)

    for sent in server.sent:
        assert (sent.method, sent.path) == ("PATCH", PATH)
        assert sent.json == patch.body
        assert sent.header("Content-Type") == [content_type]


async def test_metadata_alone_can_be_patched(client: Client, server: ScriptedServer) -> None:
    server.answers({"metadata": {"name": "a", "labels": {"x": "y"}}})
    partial = decode(metadata_only(ConfigMap), b'{"kind":"PartialObjectMetadata","metadata":{"name":"a"}}')
    partial.metadata.labels["x"] = "y"
    await client.patch(partial)

    (sent,) = server.sent
    assert sent.path == "/api/v1/namespaces/shop/configmaps/a"
    assert sent.json == {"metadata": {"labels": {"x": "y"}}}
    assert sent.header("Accept") == ["application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"]


async def test_an_object_made_in_python_has_no_difference_to_send(client: Client) -> None:
    with pytest.raises(
        ValueError, match=r"^App shop/a was not read from a server, .* use patch_from\(base\), or apply"
    ):
        await client.patch(App(metadata=ObjectMeta(name="a", namespace="shop"), spec=Spec()))


async def test_a_manifest_has_no_difference_to_send(client: Client, server: ScriptedServer) -> None:
    manifest = from_json(App, stored())
    manifest.spec.size = 5
    with pytest.raises(
        ValueError, match=r"^App shop/a was not read from a server, .* use patch_from\(base\), or apply"
    ):
        await client.patch(manifest)
    with pytest.raises(ValueError, match=r"^App shop/a was not read from a server"):
        await client.status.patch(manifest)

    assert server.sent == []


async def test_a_difference_needs_an_object(client: Client) -> None:
    with pytest.raises(TypeError, match="a difference needs an object, not just the kind App"):
        await client.patch(App, "a", patch_from(read()))


async def test_an_object_read_from_a_list_is_patched_without_its_kind(client: Client, server: ScriptedServer) -> None:
    """Items of lists come without apiVersion and kind; knowing them from the type is no change."""
    server.answers(stored())
    app = decode(App, b'{"metadata":{"name":"a","namespace":"shop"},"spec":{"size":1}}')
    app.spec.size = 2
    await client.patch(app)

    assert server.sent[0].json == {"spec": {"size": 2}}


# apply


async def test_apply_sends_what_was_set(client: Client, server: ScriptedServer) -> None:
    server.answers(stored())
    app = App(metadata=ObjectMeta(name="a", labels={"x": "y"}, resource_version="7", uid="u"), spec=Spec(size=4))
    await client.apply(app)

    (sent,) = server.sent
    assert (sent.method, sent.path) == ("PATCH", PATH)
    assert sent.query == {"fieldManager": "kubewright", "force": "false"}
    assert sent.header("Content-Type") == ["application/apply-patch+yaml"]
    assert sent.json == {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {"name": "a", "labels": {"x": "y"}},
        "spec": {"size": 4},
    }


async def test_apply_leaves_out_what_was_not_set(client: Client, server: ScriptedServer) -> None:
    server.answers({"metadata": {"name": "a"}})
    await client.apply(ConfigMap(metadata=ObjectMeta(name="a"), data={"x": "1"}), force=True, field_manager="me")

    (sent,) = server.sent
    assert sent.query == {"fieldManager": "me", "force": "true"}
    assert sent.json == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}


async def test_status_is_applied_alone(client: Client, server: ScriptedServer) -> None:
    server.answers(stored())
    app = App(metadata=ObjectMeta(name="a", labels={"x": "y"}), spec=Spec(), status=AppStatus(ready=2))
    await client.status.apply(app)

    (sent,) = server.sent
    assert sent.path == f"{PATH}/status"
    assert sent.json == {
        "apiVersion": "example.com/v1",
        "kind": "App",
        "metadata": {"name": "a"},
        "status": {"ready": 2},
    }


async def test_a_field_of_another_manager_is_a_conflict(client: Client, server: ScriptedServer) -> None:
    server.refuses(
        409,
        "Conflict",
        "Apply failed with 1 conflict",
        causes=[{"reason": "FieldManagerConflict", "field": ".spec.size"}],
    )
    with pytest.raises(Conflict, match=r"^apply App shop/a: Apply failed") as caught:
        await client.apply(read())

    assert [cause.field for cause in caught.value.status.causes] == [".spec.size"]


# options


async def test_the_options_of_the_client_hold_for_every_write(server: ScriptedServer) -> None:
    client = Client(
        Config(server="https://kubernetes.example.com", namespace="shop"),
        transport=server,
        field_manager="shop-operator",
        field_validation="Strict",
        dry_run=True,
    )
    for _ in range(6):
        server.answers(stored())
    app = read()
    app.spec.size = 2
    app.status.ready = 2
    await client.create(app)
    await client.update(app)
    await client.patch(app)
    await client.apply(app)
    await client.status.patch(app)
    await client.delete(app)

    *writes, deletion = server.sent
    for sent in writes:
        assert {name: value for name, value in sent.query.items() if name != "force"} == {
            "dryRun": "All",
            "fieldManager": "shop-operator",
            "fieldValidation": "Strict",
        }
    assert deletion.json == {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}


async def test_the_options_of_a_write_win(server: ScriptedServer) -> None:
    client = Client(
        Config(server="https://kubernetes.example.com", namespace="shop"),
        transport=server,
        field_validation="Strict",
        dry_run=True,
    )
    for _ in range(2):
        server.answers(stored())
    await client.update(read(), dry_run=False, field_manager="me", field_validation="Ignore")
    await client.delete(read(), dry_run=False)

    assert server.sent[0].query == {"fieldManager": "me", "fieldValidation": "Ignore"}
    assert server.sent[1].json == {"apiVersion": "v1", "kind": "DeleteOptions"}


async def test_a_single_write_can_be_a_dry_run(client: Client, server: ScriptedServer) -> None:
    server.answers(stored())
    await client.update(read(), dry_run=True)

    assert server.sent[0].query == {"dryRun": "All", "fieldManager": "kubewright"}


# answers


async def test_an_answer_that_does_not_fit_its_type_names_the_request(client: Client, server: ScriptedServer) -> None:
    server.answers({"kind": "App", "metadata": {"name": "a"}, "spec": {"size": "large"}})
    with pytest.raises(DecodeError, match=r'^update App shop/a: App "a": not a valid App: .*size'):
        await client.update(read())


async def test_an_answer_that_is_no_json_names_the_request(client: Client, server: ScriptedServer) -> None:
    server.answers(b"<html>sign in</html>", headers={"Content-Type": "text/html"})
    with pytest.raises(ProtocolError, match=r"^get App shop/a: the server answered 200 \(text/html\) with something"):
        await client.get(App, "a")


async def test_an_invalid_object_names_its_fields(client: Client, server: ScriptedServer) -> None:
    server.refuses(422, "Invalid", "spec.size: must be positive", causes=[{"field": "spec.size"}])
    with pytest.raises(Invalid, match=r"^create App shop/a: spec.size: must be positive$") as caught:
        await client.create(read())

    assert [cause.field for cause in caught.value.status.causes] == ["spec.size"]


# namespaces


async def test_the_default_namespace_is_that_of_the_configuration(client: Client, server: ScriptedServer) -> None:
    for _ in range(4):
        server.answers(stored())
    await client.get(App, "a")
    await client.get(App, "a", namespace="elsewhere")
    await client.get(App, ObjectKey("elsewhere", "a"))
    await client.get(App, ObjectKey("", "a"))

    assert client.namespace == "shop"
    assert [sent.path.split("/")[5] for sent in server.sent] == ["shop", "elsewhere", "elsewhere", "shop"]


async def test_cluster_scoped_kinds_ignore_the_namespace_of_a_view_or_key(
    client: Client, server: ScriptedServer
) -> None:
    for _ in range(2):
        server.answers({"metadata": {"name": "n"}})
    await client.get(Node, "n")
    await client.in_namespace("shop").get(Node, ObjectKey("elsewhere", "n"))

    assert {sent.path for sent in server.sent} == {"/api/v1/nodes/n"}


async def test_an_object_names_itself(client: Client, server: ScriptedServer) -> None:
    for _ in range(3):
        server.answers({"metadata": {"name": "web", "namespace": "store"}})
    secret = Secret(metadata=ObjectMeta(name="web", namespace="store"))
    await client.get(secret)
    await client.find(secret)
    await client.get(ConfigMap, secret)

    path = "/api/v1/namespaces/store/secrets/web"
    assert [sent.path for sent in server.sent] == [path, path, "/api/v1/namespaces/store/configmaps/web"]


async def test_kinds_known_by_name_are_written_as_discovery_says(client: Client, server: ScriptedServer) -> None:
    server.answers(
        {
            "resources": [
                {"name": "widgetry", "kind": "Widget", "namespaced": True},
                {"name": "widgetry/status", "kind": "Widget", "namespaced": True},
            ]
        }
    )
    server.answers({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    await client.create(Widget(metadata=ObjectMeta(name="w"), content={"spec": {"size": 1}, "status": {"a": 1}}))

    sent = server.sent[1]
    assert sent.path == "/apis/example.com/v1/namespaces/shop/widgetry"
    assert sent.json == {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": 1},
    }
