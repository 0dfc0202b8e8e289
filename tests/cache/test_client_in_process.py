"""The cached client with every sort of kind, scope and verb, in virtual time, on a control plane without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress

import pytest

from kubewright.api.apps.v1 import Deployment, DeploymentSpec
from kubewright.api.codec import decode
from kubewright.api.core.v1 import (
    ConfigMap,
    Container,
    Namespace,
    Node,
    NodeSpec,
    Pod,
    PodSpec,
    PodTemplateSpec,
    ServiceAccount,
)
from kubewright.api.dynamic import Dynamic, metadata_only
from kubewright.api.errors import DecodeError
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.api.model import Model
from kubewright.api.resources import Object, Resource, resource
from kubewright.cache import Cache, CachedClient, own_writes
from kubewright.cache.client import Consistency
from kubewright.cache.entry import CacheEntry, parse_entry
from kubewright.cache.write_context import WriteCount, reconcile_priority, write_count
from kubewright.cache.write_origin import WriteOrigin
from kubewright.client import Client
from kubewright.client.errors import InternalError, NotFound, Status
from kubewright.client.http.transport import Response
from kubewright.client.patch import MergePatch
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.manifest.crd import definition_of
from kubewright.testing.virtual_time import run_virtual


@resource("v1", kind="ConfigMap", plural="configmaps")
class Numbers(Object):
    """ConfigMaps, as a program sees them that expects numbers."""

    data: dict[str, int] = {}


@resource("example.com/v1", plural="gadgets", namespaced=True)
class Gadget(Object):
    """Of a kind that is not installed."""

    size: str = ""


class World:
    """A control plane, a cache of it, and the client of a program."""

    def __init__(self, plane: EmbeddedControlPlane, admin: Client, cache: Cache) -> None:
        self.plane = plane
        self.admin = admin
        self.cache = cache
        self.client = CachedClient(admin, cache)

    @property
    def requests(self) -> int:
        """How many were answered so far."""
        return sum(self.admin.answers.values())

    def hold_watches(self) -> None:
        """From now on the open watches bring nothing."""
        self.plane.faults.silence_open_watches(lambda target: target.verb == "watch")

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(3600):
            while not holds():
                await asyncio.sleep(0.01)

    async def create(self, name: str, namespace: str = "default", **data: str) -> ConfigMap:
        """As another program does."""
        return await self.admin.create(settings(name, namespace, **data))

    async def names(self, kind: type[Object] = ConfigMap, namespace: str | None = None) -> list[str]:
        return [each.metadata.name for each in await self.client.list(kind, namespace=namespace)]


@asynccontextmanager
async def world(*, namespaces: Collection[str] = (), existing: Collection[str] = ()) -> AsyncIterator[World]:
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as admin:
        assert isinstance(plane, EmbeddedControlPlane)
        for name in {*namespaces, *existing}:
            await admin.create(Namespace(metadata=ObjectMeta(name=name)))
        cache = Cache(admin, namespaces=namespaces)
        task = asyncio.create_task(cache.run())
        await asyncio.sleep(0)
        try:
            yield World(plane, admin, cache)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def run(scenario: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await scenario()

    run_virtual(main)


def settings(name: str, namespace: str = "default", **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace=namespace, labels={"app": name}), data=data)


def deployment(name: str) -> Deployment:
    template = PodTemplateSpec(
        metadata=ObjectMeta(labels={"app": name}), spec=PodSpec(containers=[Container(name="c", image="i")])
    )
    spec = DeploymentSpec(replicas=1, selector=LabelSelector(match_labels={"app": name}), template=template)
    return Deployment(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


# Which watch answers


def test_a_program_confined_to_namespaces_lists_those_from_the_cache() -> None:
    async def scenario() -> None:
        async with world(namespaces=["a", "b"], existing=["c"]) as here:
            for namespace in ("a", "b", "c"):
                await here.create(f"in-{namespace}", namespace)
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                before = here.requests
                assert await here.names() == ["in-a", "in-b"]
                assert await here.names(namespace="b") == ["in-b"]
                assert here.requests == before
                assert await here.names(namespace="c") == ["in-c"]
                assert here.requests == before + 1

    run(scenario)


@pytest.mark.parametrize("page_size", [1, 2, 500])
def test_a_program_confined_to_namespaces_lists_those_whether_it_watches_the_kind_or_not(page_size: int) -> None:
    async def scenario() -> None:
        async with world(namespaces=["b", "a", "empty"], existing=["c"]) as here:
            for namespace in ("a", "b", "c"):
                for number in range(3):
                    await here.create(f"in-{namespace}-{number}", namespace)
            wanted = [f"in-{namespace}-{number}" for namespace in ("a", "b") for number in range(3)]

            async def listed(consistency: Consistency = "own-writes") -> list[str]:
                listing = here.client.list(ConfigMap, page_size=page_size, consistency=consistency)
                names = [each.metadata.name async for each in listing]
                assert names == [each.metadata.name for each in await listing]
                assert names == [each.metadata.name for each in (await listing.fetch("", 0)).items]
                return names

            assert await listed() == wanted
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                assert await listed() == wanted
                assert await listed(consistency="live") == wanted
            assert await here.names(namespace="c") == ["in-c-0", "in-c-1", "in-c-2"]
            assert {"a", "c", "default"} <= set(await here.names(Namespace))
            view = here.client.in_namespace("c")
            assert len(await view.list(ConfigMap)) == 3

    run(scenario)


def test_a_namespace_named_twice_is_watched_and_listed_once() -> None:
    async def scenario() -> None:
        async with world(namespaces=["a"]) as here:
            here.cache.set_namespaces(["a", "a"])
            await here.create("one", "a")
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                assert await here.names() == ["one"]
                assert len(handle.informers) == 1

    run(scenario)


def test_a_view_of_one_namespace_still_lists_kinds_that_have_none() -> None:
    async def scenario() -> None:
        async with world(existing=["a"]) as here:
            with here.cache.watch(Namespace) as namespaces, here.cache.watch(ConfigMap) as settings_view:
                await namespaces.synced()
                await settings_view.synced()
                await here.create("here", "a")
                await here.create("there", "default")
                await here.until(lambda: len(settings_view.list(labels="app")) == 2)
                view, before = here.client.in_namespace("a"), here.requests
                assert "a" in [each.metadata.name for each in await view.list(Namespace)]
                assert [each.metadata.name for each in await view.list(ConfigMap)] == ["here"]
                assert (await view.get(ConfigMap, "here")).metadata.namespace == "a"
                assert here.requests == before
                with pytest.raises(ValueError, match='stays in the namespace "a"'):
                    await view.list(ConfigMap, namespace="default")

    run(scenario)


def test_a_watch_by_selector_answers_for_what_it_selects_and_the_server_for_the_rest() -> None:
    async def scenario() -> None:
        async with world() as here:
            await here.create("in", x="1")
            await here.create("out")
            with here.cache.watch(ConfigMap, labels={"app": "in"}) as handle:
                await handle.synced()
                before = here.requests
                assert (await here.client.get(ConfigMap, "in", namespace="default")).data == {"x": "1"}
                same = await here.client.list(ConfigMap, namespace="default", labels={"app": "in"})
                assert [each.metadata.name for each in same] == ["in"]
                assert here.requests == before
                assert (await here.client.get(ConfigMap, "out", namespace="default")).metadata.name == "out"
                assert await here.client.find(ConfigMap, "nothing", namespace="default") is None
                assert {"in", "out"} <= set(await here.names(namespace="default"))
                assert here.requests == before + 3

    run(scenario)


def test_metadata_is_read_from_either_watch_and_whole_objects_only_from_the_watch_of_them() -> None:
    async def scenario() -> None:
        async with world() as here:
            await here.create("a", x="1")
            partial = metadata_only(ConfigMap)
            with here.cache.watch(partial) as handle:
                await handle.synced()
                before = here.requests
                assert (await here.client.get(partial, "a", namespace="default")).metadata.labels == {"app": "a"}
                assert "a" in await here.names(partial)
                assert here.requests == before
                assert (await here.client.get(ConfigMap, "a", namespace="default")).data == {"x": "1"}
                assert here.requests == before + 1
            with here.cache.watch(ConfigMap) as whole:
                await whole.synced()
                before = here.requests
                assert (await here.client.get(partial, "a", namespace="default")).metadata.labels == {"app": "a"}
                assert here.requests == before

    run(scenario)


def test_a_kind_of_unknown_scope_that_has_no_namespaces_is_shown_once_and_with_own_writes() -> None:
    """It is not known at the watch that it is cluster-scoped, so a confined program watches it once per namespace."""

    async def scenario() -> None:
        async with world(namespaces=["a", "b"]) as here:
            loose = Dynamic.of("v1", "Namespace")
            with here.cache.watch(loose) as handle:
                await handle.synced()
                assert sorted(each.metadata.name for each in handle.list()) == sorted(await here.names(loose))
                before = here.requests
                listed = await here.names(loose)
                assert sorted(set(listed)) == listed
                assert {"a", "b", "default"} <= set(listed)
                found = await here.client.get(loose, "a")
                assert here.requests == before
                here.hold_watches()
                found.metadata.labels["mine"] = "yes"
                await here.client.patch(found)
                assert (await here.client.get(loose, "a")).metadata.labels["mine"] == "yes"
                shown = {each.metadata.name: each.metadata.labels.get("mine") for each in await here.client.list(loose)}
                assert shown["a"] == "yes"

    run(scenario)


def test_a_list_begun_by_the_server_is_not_continued_from_the_cache() -> None:
    async def scenario() -> None:
        async with world() as here:
            for name in ("a", "b", "c"):
                await here.create(name)
            pages = here.client.list(ConfigMap, namespace="default", page_size=2).pages()
            names = [each.metadata.name for each in (await anext(pages)).items]
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                names += [each.metadata.name async for page in pages for each in page.items]
            assert names == ["a", "b", "c"]

    run(scenario)


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("selector", ["spec.unschedulable=false", "spec.unschedulable!=false", "metadata.name=on"])
def test_field_selectors_find_in_the_cache_what_they_find_on_the_server(selector: str, indexed: bool) -> None:
    async def scenario() -> None:
        async with world() as here:
            for name, unschedulable in (("on", None), ("off", True)):
                spec = NodeSpec(unschedulable=unschedulable)
                await here.admin.create(Node(metadata=ObjectMeta(name=name), spec=spec))
            if indexed:
                here.cache.index(Node, "spec.unschedulable")
            with here.cache.watch(Node) as handle:
                await handle.synced()
                live = await here.client.list(Node, fields=selector, consistency="live")
                before = here.requests
                found = await here.client.list(Node, fields=selector)
                assert here.requests == before
                assert [each.key for each in found] == [each.key for each in live] != []

    run(scenario)


def test_waiting_for_a_watch_ends_when_the_namespace_that_blocked_it_is_dropped() -> None:
    async def scenario() -> None:
        async with world(namespaces=["a", "b"]) as here:
            here.plane.faults.fail(
                lambda target: target.resource == "configmaps" and target.namespace == "b", code=403, times=None
            )
            with here.cache.watch(ConfigMap) as handle:
                waiting = [asyncio.create_task(handle.synced()), asyncio.create_task(handle.settled())]
                await asyncio.sleep(30)
                assert not any(task.done() for task in waiting)
                here.cache.set_namespaces(["a"])
                async with asyncio.timeout(60):
                    await asyncio.gather(*waiting)
                assert handle.is_synced

    run(scenario)


def test_waiting_for_a_watch_ends_when_it_is_released() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.plane.faults.fail(lambda target: target.resource == "configmaps", code=403, times=None)
            handle = here.cache.watch(ConfigMap)
            waiting = asyncio.create_task(handle.synced())
            await asyncio.sleep(30)
            assert not waiting.done()
            handle.release()
            async with asyncio.timeout(60):
                await waiting

    run(scenario)


def test_a_list_by_an_index_waits_until_the_watch_has_brought_its_objects() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.cache.index(ConfigMap, "x", lambda each: [each.data.get("x", "")])
            await here.create("a", x="1")
            by_x = here.client.list(ConfigMap, namespace="default", index=("x", "1"))
            with pytest.raises(LookupError, match='ConfigMap is not watched, so the index "x" has'):
                await by_x
            here.plane.faults.delay(lambda target: target.resource == "configmaps", 5.0)
            with here.cache.watch(ConfigMap):
                began = asyncio.get_running_loop().time()
                assert [each.metadata.name for each in await by_x] == ["a"]
                assert asyncio.get_running_loop().time() - began >= 5

    run(scenario)


def test_a_list_by_an_index_of_a_kind_that_is_not_installed_is_empty() -> None:
    async def scenario() -> None:
        async with world() as here:
            here.cache.index(Gadget, "size", lambda each: [each.size])
            with here.cache.watch(Gadget):
                assert await here.client.list(Gadget, index=("size", "large")) == []

    run(scenario)


def test_a_list_by_an_index_does_not_wait_for_a_watch_that_has_ended() -> None:
    async def scenario() -> None:
        async with world(namespaces=["a", "b"]) as here:
            here.cache.index(ConfigMap, "x", lambda each: [each.data.get("x", "")])
            await here.create("in-a", "a", x="1")
            here.plane.faults.fail(
                lambda target: target.resource == "configmaps" and target.namespace == "b", code=403, times=None
            )
            handle = here.cache.watch(ConfigMap)

            async def names() -> list[str]:
                return [each.metadata.name for each in await here.client.list(ConfigMap, index=("x", "1"))]

            waiting = asyncio.create_task(names())
            await asyncio.sleep(30)
            assert not waiting.done()
            here.cache.set_namespaces(["a"])
            async with asyncio.timeout(60):
                assert await waiting == ["in-a"]

            here.cache.set_namespaces(["b"])
            waiting = asyncio.create_task(names())
            await asyncio.sleep(30)
            assert not waiting.done()
            handle.release()
            async with asyncio.timeout(60):
                with pytest.raises(LookupError, match="ConfigMap is not watched"):
                    await waiting

    run(scenario)


# Objects that do not fit


def test_an_object_that_does_not_fit_its_type_stops_neither_the_others_nor_the_watch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with world() as here:
            await here.create("good", n="1")
            await here.create("bad", n="many")
            here.cache.index(Numbers, "total", lambda each: [str(sum(each.data.values()))])
            strict = here.client.in_namespace("default")
            with here.cache.watch(Numbers) as handle:
                await handle.synced()
                with pytest.raises(DecodeError, match=r'ConfigMap "default/bad".*data'):
                    await strict.get(Numbers, "bad")
                with pytest.raises(DecodeError, match=r'ConfigMap "default/bad".*data') as caught:
                    await strict.find(Numbers, "bad")
                assert (caught.value.kind, caught.value.key) == ("ConfigMap", ObjectKey("default", "bad"))
                await here.create("fits")
                await here.until(lambda: handle.find(ObjectKey("default", "fits")) is not None)
                for listing in (
                    strict.list(Numbers),
                    strict.list(Numbers, consistency="cached"),
                    strict.list(Numbers, consistency="live"),
                ):
                    assert [each.metadata.name for each in await listing] == ["fits"]
                assert [each.metadata.name for each in handle.list(namespace="default")] == ["fits"]
                assert here.client.skipped.counts == here.admin.skipped.counts
                assert here.client.skipped.counts["ConfigMap"] >= 8
                assert (await strict.get(ConfigMap, "bad")).data == {"n": "many"}
                assert await strict.list(Numbers, index=("total", "1")) == []  # "1" is no number, either
                await here.create("later")
                await here.until(lambda: handle.find(ObjectKey("default", "later")) is not None)
                assert (await strict.get(Numbers, "later")).data == {}

    run(scenario)
    assert sum('"default/bad"' in record.getMessage() for record in caplog.records) == 1


# Own writes


def test_a_status_that_was_written_is_seen_at_once() -> None:
    async def scenario() -> None:
        async with world() as here:
            made = await here.admin.create(deployment("web"))
            with here.cache.watch(Deployment) as handle:
                await handle.synced()
                here.hold_watches()
                made.status.replicas = 1
                made = await here.client.status.update(made)
                assert (await here.client.get(Deployment, made.key)).status.replicas == 1
                made.status.replicas = 2
                await here.client.status.patch(made)
                assert (await here.client.get(Deployment, made.key)).status.replicas == 2

    run(scenario)


def test_a_submitted_object_is_seen_at_once() -> None:
    async def scenario() -> None:
        async with world() as here:
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                here.hold_watches()
                await here.client.submit(settings("a", x="1"))
                assert (await here.client.get(ConfigMap, ObjectKey("default", "a"))).data == {"x": "1"}

    run(scenario)


def test_a_write_whose_answer_does_not_fit_its_type_is_seen_at_once_by_those_it_fits() -> None:
    async def scenario() -> None:
        async with world() as here:
            made = await here.create("a")
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                here.hold_watches()
                with pytest.raises(DecodeError, match="data"):
                    await here.client.patch(Numbers, made.key, MergePatch({"data": {"n": "many"}}))
                assert (await here.client.get(ConfigMap, made.key)).data == {"n": "many"}

    run(scenario)


def test_a_scale_response_is_never_taken_for_the_object() -> None:
    async def scenario() -> None:
        async with world() as here:
            made = await here.admin.create(deployment("web"))
            with here.cache.watch(Deployment) as handle:
                await handle.synced()
                here.hold_watches()
                await here.client.scale(made, replicas=5)
                shown = await here.client.get(Deployment, made.key)
                assert shown.spec.template.spec is not None
                assert shown.spec.replicas == 1
                assert (await here.client.get(Deployment, made.key, consistency="live")).spec.replicas == 5
                await here.until(lambda: (now := handle.find(made.key)) is not None and now.spec.replicas == 5)

    run(scenario)


def test_an_evicted_pod_is_shown_until_the_watch_removes_it() -> None:
    async def scenario() -> None:
        async with world() as here:
            await here.admin.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
            spec = PodSpec(containers=[Container(name="c", image="i")])
            pod = await here.admin.create(Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=spec))
            with here.cache.watch(Pod) as handle:
                await handle.synced()
                here.hold_watches()
                await here.client.evict(pod, grace_period=0)
                assert (await here.client.get(Pod, pod.key)).metadata.uid == pod.metadata.uid
                await here.until(lambda: handle.find(pod.key) is None)

    run(scenario)


def test_a_deleted_collection_is_gone_when_the_watch_removes_it() -> None:
    async def scenario() -> None:
        async with world(existing=["a"]) as here:
            await here.create("one", "a")
            await here.create("two", "a")
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                await here.client.delete_all(ConfigMap, namespace="a")
                await here.until(lambda: handle.list(namespace="a") == [])
                assert await here.names(namespace="a") == []

    run(scenario)


def test_an_object_with_a_generated_name_is_seen_under_that_name() -> None:
    async def scenario() -> None:
        async with world() as here:
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                here.hold_watches()
                metadata = ObjectMeta(generate_name="made-", namespace="default")
                made = await here.client.create(ConfigMap(metadata=metadata))
                assert made.metadata.name.startswith("made-")
                assert (await here.client.get(ConfigMap, made.key)).metadata.uid == made.metadata.uid
                assert made.metadata.name in await here.names()

    run(scenario)


def test_an_object_without_namespace_is_not_put_into_the_namespace_of_the_program() -> None:
    async def scenario() -> None:
        async with world() as here:
            nowhere = ConfigMap(metadata=ObjectMeta(name="a"))
            for write in (here.client.create, here.client.submit, here.client.update, here.client.apply):
                with pytest.raises(ValueError, match=r"^ConfigMap a names no namespace: set metadata\.namespace"):
                    await write(nowhere)
            with pytest.raises(ValueError, match=r'client\.in_namespace\("default"\)'):
                await here.client.delete(nowhere)
            assert await here.admin.find(ConfigMap, "a") is None
            created = await here.client.in_namespace("default").create(nowhere)
            assert created.metadata.namespace == "default"
            assert await here.client.get(ConfigMap, "a") == created
            await here.client.create(Namespace(metadata=ObjectMeta(name="a")))

    run(scenario)


@pytest.mark.parametrize("watches_metadata", [False, True])
def test_a_patch_of_metadata_is_seen_at_once_and_loses_nothing_of_the_rest(watches_metadata: bool) -> None:
    async def scenario() -> None:
        async with world() as here:
            await here.create("a", x="1")
            partial = metadata_only(ConfigMap)
            with here.cache.watch(partial if watches_metadata else ConfigMap) as handle:
                await handle.synced()
                here.hold_watches()
                found = await here.client.get(partial, "a", namespace="default")
                found.metadata.labels["mine"] = "yes"
                answered = await here.client.patch(found)
                assert answered.metadata.labels == {"app": "a", "mine": "yes"}
                seen = await here.client.get(partial, "a", namespace="default")
                assert seen.metadata.labels == {"app": "a", "mine": "yes"}
                assert await here.client.find(partial, "a", namespace="default", consistency="cached") is not None
                whole = await here.client.get(ConfigMap, "a", namespace="default")
                assert (whole.metadata.labels, whole.data) == ({"app": "a", "mine": "yes"}, {"x": "1"})

    run(scenario)


def test_a_patch_of_metadata_is_shown_by_the_watch_of_metadata_and_by_that_of_whole_objects() -> None:
    async def scenario() -> None:
        async with world() as here:
            await here.create("a", x="1")
            partial = metadata_only(ConfigMap)
            with here.cache.watch(partial) as thin, here.cache.watch(ConfigMap) as whole:
                await thin.synced()
                await whole.synced()
                assert len(here.cache.informers()) == 2
                here.hold_watches()
                patch = MergePatch({"metadata": {"labels": {"mine": "yes"}}})
                await here.client.patch(partial, "a", patch, namespace="default")
                for handle in (thin, whole):
                    found = handle.find(ObjectKey("default", "a"))
                    assert found is not None
                    assert found.metadata.labels == {"app": "a", "mine": "yes"}

    run(scenario)


async def _update(client: Client, made: ConfigMap, x: str) -> None:
    made.data["x"] = x
    await client.update(made)


async def _update_newest(client: Client, made: ConfigMap, x: str) -> None:
    newest = await client.get(ConfigMap, made.key, resource_version="0")
    await _update(client, newest, x)


async def _patch(client: Client, made: ConfigMap, x: str) -> None:
    await client.patch(ConfigMap, made.key, MergePatch({"data": {"x": x}}))


async def _patch_locked(client: Client, made: ConfigMap, x: str) -> None:
    newest = await client.get(ConfigMap, made.key, resource_version="0")
    revision = newest.metadata.resource_version
    patch = MergePatch({"metadata": {"resourceVersion": revision}, "data": {"x": x}})
    await client.patch(ConfigMap, made.key, patch)


async def _apply(client: Client, made: ConfigMap, x: str) -> None:
    await client.apply(ConfigMap(metadata=ObjectMeta(name="a", namespace="default"), data={"x": x}), force=True)


@pytest.mark.parametrize("write", [_update_newest, _patch, _patch_locked])
def test_a_write_that_changes_nothing_does_not_claim_the_revision_of_another_writer(
    write: Callable[[Client, ConfigMap, str], Awaitable[None]],
) -> None:
    """It is answered with the object as another writer made it, before the watch has brought that."""
    notified: list[tuple[str, bool]] = []

    def listen(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
        if new is not None and not initial and new.name == "a":
            notified.append((decode(ConfigMap, new.body).data["x"], own is not None and own.made(old, new)))

    async def scenario() -> None:
        async with world() as here:
            made = await here.create("a", x="1", y="1")
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                handle.subscribe(listen)
                here.hold_watches()
                made.data = {"x": "2", "y": "2"}
                foreign = await here.admin.update(made)
                await write(here.client, made, "2")
                assert (await here.client.get(ConfigMap, made.key)).data == foreign.data
                here.plane.faults.cut_open_watches(lambda target: target.verb == "watch")
                await here.until(lambda: bool(notified))

    run(scenario)
    assert notified == [("2", False)]


@pytest.mark.parametrize("write", [_update, _update_newest, _patch, _patch_locked, _apply])
def test_the_echo_of_a_write_that_changed_something_is_known_as_such(
    write: Callable[[Client, ConfigMap, str], Awaitable[None]],
) -> None:
    notified: list[tuple[str, bool, int]] = []

    def listen(old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None) -> None:
        if new is not None and not initial and new.name == "a":
            own = own or WriteOrigin(-1)
            notified.append((decode(ConfigMap, new.body).data["x"], own.made(old, new), own.priority))

    async def scenario() -> None:
        async with world() as here:
            made = await here.create("a", x="1", y="1")
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                handle.subscribe(listen)
                here.hold_watches()
                reconcile_priority.set(7)
                await write(here.client, made, "2")
                here.plane.faults.cut_open_watches(lambda target: target.verb == "watch")
                await here.until(lambda: bool(notified))

    run(scenario)
    assert notified == [("2", True, 7)]


def test_dry_runs_of_every_write_leave_no_trace() -> None:
    async def scenario() -> None:
        async with world() as here:
            made = await here.create("a", x="1")
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                made.data["x"] = "2"
                await here.client.update(made, dry_run=True)
                await here.client.patch(made, dry_run=True)
                await here.client.apply(settings("b", y="1"), dry_run=True)
                await here.client.create(settings("c"), dry_run=True)
                await here.client.delete(made, dry_run=True)
                assert await here.names(namespace="default") == ["a"]
                assert (await here.client.get(ConfigMap, made.key)).data == {"x": "1"}

    run(scenario)


def test_writes_are_counted_in_the_running_reconcile() -> None:
    async def counted(write: Awaitable[object]) -> int:
        writes = WriteCount()
        write_count.set(writes)
        await write
        return writes.value

    async def scenario() -> None:
        async with world() as here:
            client, made, other = here.client, await here.create("a"), await here.create("b")
            made.data["x"] = "1"
            assert await counted(client.create(settings("c"))) == 1
            assert await counted(client.update(made)) == 1
            assert await counted(client.patch(other, MergePatch({"data": {"x": "1"}}))) == 1
            assert await counted(client.apply(settings("d"))) == 1
            account = await here.admin.create(ServiceAccount(metadata=ObjectMeta(name="robot", namespace="default")))
            assert await counted(client.token(account)) == 1
            assert await counted(client.delete(other)) == 1
            assert await counted(client.delete_all(ConfigMap, namespace="default", labels={"app": "c"})) == 1
            assert await counted(client.get(ConfigMap, made.key)) == 0
            assert await counted(client.create(settings("e"), dry_run=True)) == 0
            assert await counted(client.delete(made, dry_run=True)) == 0
            assert await counted(client.delete(other, missing_ok=True)) == 0

    run(scenario)


def test_writes_that_change_nothing_are_not_counted() -> None:
    async def counted(write: Awaitable[object]) -> int:
        writes = WriteCount()
        write_count.set(writes)
        await write
        return writes.value

    async def scenario() -> None:
        async with world() as here:
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                for client in (here.client, here.client.uncached()):
                    watched = await here.create(f"a-{type(client).__name__.lower()}")
                    metadata = ObjectMeta(name=watched.metadata.name, namespace="default")
                    unwatched = await here.admin.create(ServiceAccount(metadata=metadata))
                    for obj in (watched, unwatched):
                        assert await counted(client.update(obj)) == 0
                        change = MergePatch({"metadata": {"labels": {"a": "b"}}})
                        assert [await counted(client.patch(obj, change)) for _ in range(3)] == [1, 0, 0]

    run(scenario)


def test_a_change_of_an_object_that_was_written_before_forgets_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_writes, "_MAX_ANSWERED", 2)

    async def scenario() -> None:
        async with world() as here:
            writes = WriteCount()
            write_count.set(writes)

            async def patch(obj: ConfigMap, value: str) -> int:
                before = writes.value
                await here.client.patch(obj, MergePatch({"data": {"a": value}}))
                return writes.value - before

            objects = [await here.admin.create(settings(name)) for name in ("a", "b")]
            assert [await patch(obj, "1") for obj in objects] == [1, 1]
            assert [await patch(objects[1], value) for value in ("2", "3")] == [1, 1]
            assert await patch(objects[0], "1") == 0

    run(scenario)


def test_writes_of_the_uncached_view_are_own_writes() -> None:
    async def scenario() -> None:
        async with world() as here:
            origins: dict[str, bool] = {}
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                handle.subscribe(
                    lambda old, new, initial, own: origins.update({new.name: own is not None} if new else {})
                )
                await here.client.uncached().create(settings("live"))
                await here.admin.create(settings("foreign"))
                await asyncio.sleep(1)
            assert (origins["live"], origins["foreign"]) == (True, False)

    run(scenario)


def test_a_write_that_was_done_and_answered_by_an_error_is_seen_with_the_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async with world() as here:
            made = await here.create("a", x="1")
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                session = here.client._operations.session
                request = session.request

                async def done_but_failed(method: str, path: str, **how: object) -> Response:
                    await request(method, path, **how)  # type: ignore[arg-type]  # handed through as it is
                    raise InternalError(Status(code=500, reason="InternalError", message="lost"), "")

                made.data["x"] = "2"
                with monkeypatch.context() as patched:
                    patched.setattr(session, "request", done_but_failed)
                    with pytest.raises(InternalError):
                        await here.client.update(made)
                    with pytest.raises(InternalError):
                        await here.client.delete(await here.client.get(ConfigMap, made.key))
                await here.until(lambda: handle.find(made.key) is None)
                with pytest.raises(NotFound):
                    await here.client.get(ConfigMap, made.key)

    run(scenario)


@pytest.mark.parametrize("held", [False, True])
def test_an_object_that_is_deleted_before_the_watch_has_brought_it_is_never_shown(held: bool) -> None:
    notified: list[str] = []

    async def scenario() -> None:
        async with world() as here:
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                here.hold_watches()
                new = settings("new")
                if held:
                    new.metadata.finalizers = ["example.com/hold"]
                made = await here.admin.create(new)

                def listen(
                    old: CacheEntry | None, new: CacheEntry | None, initial: bool, own: WriteOrigin | None
                ) -> None:
                    if initial:
                        return
                    entry = new or old
                    assert entry is not None
                    notified.append("deleted" if new is None else "added")
                    assert handle.find(entry.key) is None
                    notified.append("hidden")

                handle.subscribe(listen)
                await here.client.delete(made)
                if held:
                    live = await here.client.get(ConfigMap, made.key, consistency="live")
                    live.metadata.finalizers = []
                    await here.client.update(live)
                assert await here.client.find(ConfigMap, made.key) is None
                here.plane.faults.cut_open_watches(lambda target: target.verb == "watch")
                await here.until(lambda: "deleted" in notified)
                assert len(handle.informers[0]._overlay) == 0
                again = await here.create("new")
                await here.until(lambda: handle.find(again.key) is not None)

    run(scenario)
    assert notified[:2] == ["added", "hidden"]


def test_nothing_is_kept_of_an_object_whose_deletion_event_came_before_the_response(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with world() as here:
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                session = here.client._operations.session
                request = session.request
                ends: list[str] = []
                handle.subscribe(lambda old, new, initial, own: ends.append("" if new is not None else "end"))

                async def answered_late(method: str, path: str, **how: object) -> Response:
                    answer = await request(method, path, **how)  # type: ignore[arg-type]  # handed through as it is
                    if method == "DELETE":
                        await here.until(lambda: "end" in ends)
                    return answer

                monkeypatch.setattr(session, "request", answered_late)
                await here.client.delete(await here.client.create(settings("a")))
                assert len(handle.informers[0]._overlay) == 0
                assert handle.informers[0]._overlay._removals == {}

    run(scenario)


def test_a_delete_that_is_refused_hides_nothing() -> None:
    async def scenario() -> None:
        async with world() as here:
            made = await here.create("a")
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                here.plane.faults.fail(_is_deletion, code=409)
                with pytest.raises(Exception, match="injected fault"):
                    await here.client.delete(made)
                assert await here.client.find(ConfigMap, made.key) is not None

    run(scenario)


def _is_deletion(target: Target) -> bool:
    return target.verb == "delete"


# Large stores


def test_other_tasks_run_while_a_large_cached_list_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 objects take tens of milliseconds to decode. Counted are objects between turns of the loop, not seconds."""
    decoded = 0

    def counting(kind: type[Object], raw: bytes) -> Object:
        nonlocal decoded
        decoded += 1
        return decode(kind, raw)

    async def scenario() -> None:
        async with world() as here:
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                informer = handle.informers[0]
                made = await here.create("a")
                await here.until(lambda: handle.find(made.key) is not None)
                entry = informer.find(made.key)
                assert entry is not None

                def named(name: str) -> CacheEntry:
                    return parse_entry(entry.body.replace(b'"name":"a"', f'"name":"{name}"'.encode()))

                for number in range(5_000):
                    informer.apply(named(f"n{number:05}"))
                monkeypatch.setattr("kubewright.client.skipped.decode", counting)
                listing = asyncio.ensure_future(here.client.list(ConfigMap, namespace="default")._all())
                turns, most, before = 0, 0, 0
                while not listing.done():
                    turns += 1
                    most, before = max(most, decoded - before), decoded
                    informer.apply(named(f"w{turns:05}"))
                    await asyncio.sleep(0)
                names = [each.metadata.name for each in await listing]
                assert names == sorted(set(names))
                assert len(names) >= 5_000
                assert max(most, decoded - before) <= 256
                assert turns >= 5_000 // 256

    run(scenario)


def test_closing_a_cached_client_leaves_the_client_below_open() -> None:
    async def scenario() -> None:
        async with world() as here:
            with here.cache.watch(ConfigMap) as handle:
                await handle.synced()
                watches = here.requests
                async with here.client.in_namespace("default") as view:
                    await view.aclose()
                await here.client.aclose()
                made = await here.create("a")
                await here.until(lambda: handle.find(made.key) is not None)
                assert here.requests == watches + 1  # the open watch has brought it

    run(scenario)


class PlateSpec(Model):
    """Nothing is wanted."""


@resource("kitchen.kubewright.test/v1")
class Plate(Resource[PlateSpec, None]):
    """A kind that may be installed or not."""


def test_whether_a_watched_kind_is_served_costs_no_request() -> None:
    async def scenario() -> None:
        async with world() as w:
            with w.cache.watch(Plate) as handle:
                assert not await w.client.serves(Plate)
                await handle.absent()
                before = w.requests
                assert not await w.client.serves(Plate)
                assert w.requests == before
                await w.admin.create(definition_of(Plate))
                await handle.synced()
                before = w.requests
                assert await w.client.serves(Plate)
                assert w.requests == before
            assert await w.client.serves(ConfigMap)
            assert w.requests == before + 1

    run(scenario)
