"""What the builder puts together, as seen from the controller that comes out and from what the cache then watches."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import msgspec
import pytest

from kubewright.api.apiextensions.v1 import CustomResourceDefinition, JSONSchemaProps
from kubewright.api.apps.v1 import Deployment
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.api.dynamic import Dynamic
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.api.model import Model
from kubewright.api.resources import Object, Resource, resource, resource_info
from kubewright.cache import Cache, CachedClient
from kubewright.cache.informer import Scope
from kubewright.client import Client, MergePatch
from kubewright.controller.builder import controller_for
from kubewright.controller.context import current
from kubewright.controller.controllers import Controller
from kubewright.controller.defaults import ControllerDefaults
from kubewright.controller.event import Event
from kubewright.controller.handler import Handler, for_object
from kubewright.controller.predicates import in_namespaces, labels_changed, resource_version_changed
from kubewright.controller.ratelimit import ExponentialBackoff
from kubewright.controller.reconcile import Attempt, Request, Result
from kubewright.controller.source import Channel
from kubewright.controlplane import ControlPlane
from kubewright.manifest.crd import crd_of
from kubewright.testing.virtual_time import run_virtual


class Home:
    """Where a controller lives; a manager is one."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.cache = Cache(client, namespaces=["default"])
        self.controller_defaults = ControllerDefaults()
        self.expected: list[str] = []
        self.added: list[Controller[Request]] = []

    def expect(self, name: str) -> None:
        self.expected.append(name)

    def add(self, controller: Controller[Request]) -> None:
        self.added.append(controller)

    async def create(self, name: str, *, owner: ConfigMap | None = None, is_controller: bool = True) -> ConfigMap:
        owners = [owner.as_owner(controller=is_controller)] if owner is not None else []
        metadata = ObjectMeta(name=name, namespace="default", owner_references=owners, labels={"app": name})
        return await self.client.create(ConfigMap(metadata=metadata))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self.cache.run())]
        for each in self.added:
            tasks += [asyncio.create_task(each.run_sources()), asyncio.create_task(each.run_workers())]
        try:
            await asyncio.sleep(10)
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            for task in tasks:
                if not task.cancelled():
                    task.result()


class Noting:
    def __init__(self) -> None:
        self.seen: list[str] = []

    async def reconcile(self, request: Request) -> None:
        self.seen.append(request.name)

    async def news(self) -> list[str]:
        """The names of what was reconciled since the last call, after all that has happened."""
        await asyncio.sleep(10)
        seen, self.seen = sorted(self.seen), []
        return seen


def at_home(test: Callable[[Home], Coroutine[None, None, None]]) -> Callable[[], None]:
    """Run a test in virtual time, on an embedded control plane."""

    async def main() -> None:
        async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
            await test(Home(client))

    @functools.wraps(test)
    def run() -> None:
        run_virtual(main)

    # pytest must not see the coroutine function behind it.
    del run.__dict__["__wrapped__"]
    return run


@at_home
async def test_nothing_is_built_before_it_is_complete(home: Home) -> None:
    builder = controller_for(home, ConfigMap)
    assert home.added == []
    built = builder.complete(Noting())
    assert home.added == [built]
    assert not home.cache.informers(), "nor watched before the start"


@at_home
async def test_the_objects_of_the_kind_are_reconciled(home: Home) -> None:
    noting = Noting()
    controller_for(home, ConfigMap).complete(noting)
    await home.create("old")
    async with home.running():
        assert await noting.news() == ["old"]
        await home.create("new")
        assert await noting.news() == ["new"]


@at_home
async def test_the_name_is_that_of_the_kind_unless_given(home: Home) -> None:
    assert controller_for(home, ConfigMap).complete(Noting()).name == "configmap"
    assert controller_for(home, ConfigMap, name="settings-2").complete(Noting()).name == "settings-2"


@pytest.mark.parametrize("name", ["Settings", "a_b", "-a", "a-", "a b"])
def test_a_bad_name_is_refused(name: str) -> None:
    @at_home
    async def scenario(home: Home) -> None:
        with pytest.raises(ValueError, match=f'"{name}" is not a name for a controller: expected lower-case letters'):
            controller_for(home, ConfigMap, name=name)

    scenario()


@at_home
async def test_the_options_reach_the_controller(home: Home) -> None:
    notified: list[Attempt] = []
    times: list[float] = []
    kinds: list[str] = []

    class Failing:
        async def reconcile(self, request: Request) -> Result:
            context = current.get()
            assert context is not None
            kinds.append(context.kind)
            times.append(asyncio.get_running_loop().time())
            await asyncio.sleep(3600)
            return Result()

    built = controller_for(
        home,
        ConfigMap,
        timeout=5,
        max_attempts=2,
        limiter=ExponentialBackoff(base=7),
        debounce=3,
        needs_leader=False,
        on_error=lambda request, error, attempt: notified.append(attempt),
        workers=3,
    ).complete(Failing())
    await home.create("a")
    async with home.running():
        await asyncio.sleep(100)
    assert not built.needs_leader
    assert built.statistics.workers == 3
    assert built.statistics.timeouts == 2
    assert notified == [Attempt(1, False), Attempt(2, True)]
    assert [round(time, 3) for time in times] == [3, 15]
    assert kinds == ["ConfigMap"] * 2


@at_home
async def test_the_number_of_workers_may_be_given_later(home: Home) -> None:
    assert controller_for(home, ConfigMap).complete(Noting()).statistics.workers == 1
    assert controller_for(home, ConfigMap, workers=2).workers(5).complete(Noting()).statistics.workers == 5
    with pytest.raises(ValueError, match="workers=0, expected at least 1"):
        controller_for(home, ConfigMap).workers(0).complete(Noting())


@at_home
async def test_options_that_are_not_given_are_those_of_the_manager(home: Home) -> None:
    notified: list[Attempt] = []
    times: list[float] = []

    class Slow:
        async def reconcile(self, request: Request) -> None:
            times.append(asyncio.get_running_loop().time())
            await asyncio.sleep(3600)

    home.controller_defaults = ControllerDefaults(
        workers=3,
        timeout=5,
        max_attempts=2,
        limiter=lambda: ExponentialBackoff(base=7),
        debounce=3,
        needs_leader=False,
        sync_timeout=9,
        resync=None,
    )
    built = controller_for(home, ConfigMap, on_error=lambda request, error, attempt: notified.append(attempt)).complete(
        Slow()
    )
    await home.create("a")
    async with home.running():
        await asyncio.sleep(100_000)
    assert (built.needs_leader, built.statistics.workers, built._sync_timeout) == (False, 3, 9)
    assert notified == [Attempt(1, False), Attempt(2, True)]
    assert [round(time, 3) for time in times] == [3, 15]


@at_home
async def test_options_of_a_controller_go_before_those_of_the_manager(home: Home) -> None:
    home.controller_defaults = ControllerDefaults(
        workers=3, workers_by_kind={"ConfigMap": 5, "Deployment.apps": 6}, timeout=5, needs_leader=False
    )
    noting = Noting()

    class Slow:
        async def reconcile(self, request: Request) -> None:
            await asyncio.sleep(8)
            await noting.reconcile(request)

    given = controller_for(home, ConfigMap, workers=2, timeout=None, needs_leader=True).complete(Slow())
    assert (given.needs_leader, given.statistics.workers) == (True, 2)
    assert controller_for(home, ConfigMap, name="b").complete(noting).statistics.workers == 5
    assert controller_for(home, Deployment, name="c").complete(noting).statistics.workers == 6
    assert controller_for(home, Secret).complete(noting).statistics.workers == 3
    home.added = [given]
    await home.create("a")
    async with home.running():
        assert await noting.news() == ["a"]
    assert given.statistics.timeouts == 0


@at_home
async def test_a_controller_is_expected_from_the_moment_its_builder_is_made(home: Home) -> None:
    builder = controller_for(home, ConfigMap)
    controller_for(home, Secret, name="secrets")
    assert home.expected == ["configmap", "secrets"]
    assert builder.complete(Noting()).name == "configmap"


def test_controllers_share_no_limiter() -> None:
    with pytest.raises(TypeError, match="give a function that makes one, such as ExponentialBackoff or lambda"):
        ControllerDefaults(limiter=ExponentialBackoff())  # type: ignore[arg-type]  # that is what is tested


@at_home
async def test_the_sync_timeout_reaches_the_controller(home: Home) -> None:
    assert controller_for(home, ConfigMap, sync_timeout=3).complete(Noting())._sync_timeout == 3


@at_home
async def test_the_watch_of_the_kind_can_be_confined_and_filtered(home: Home) -> None:
    noting = Noting()
    controller_for(home, ConfigMap, where=labels_changed, labels={"app": "a"}, fields={"metadata.name": "a"}).complete(
        noting
    )
    created = await home.create("a")
    await home.create("b")
    async with home.running():
        (informer,) = home.cache.informers()
        assert (informer.scope.namespace, informer.scope.labels) == ("default", "app=a")
        assert informer.scope.fields == "metadata.name=a"
        assert await noting.news() == ["a"]
        created.data["x"] = "1"
        await home.client.update(created)
        assert await noting.news() == []


@at_home
async def test_one_namespace_alone_can_be_watched(home: Home) -> None:
    controller_for(home, ConfigMap, namespace="kube-system").complete(Noting())
    async with home.running():
        assert [informer.scope.namespace for informer in home.cache.informers()] == ["kube-system"]


@at_home
async def test_everything_is_reconciled_again_every_so_many_seconds_or_never(home: Home) -> None:
    noting, never = Noting(), Noting()
    controller_for(home, ConfigMap, resync=1000).complete(noting)
    controller_for(home, ConfigMap, name="never", resync=None).complete(never)
    await home.create("a")
    async with home.running():
        assert await noting.news() == await never.news() == ["a"]
        await asyncio.sleep(850)
        assert await noting.news() == []
        await asyncio.sleep(230)
        assert await noting.news() == ["a"]
        assert await never.news() == []


def test_unless_given_that_is_ten_hours() -> None:
    assert ControllerDefaults().resync == 36_000


@at_home
async def test_an_object_is_reconciled_on_events_of_those_it_controls(home: Home) -> None:
    noting, every = Noting(), Noting()
    only_parents = {"fields": {"metadata.name": "parent"}}
    controller_for(home, ConfigMap, **only_parents).owns(ConfigMap).complete(noting)  # type: ignore[arg-type]
    controller_for(home, ConfigMap, name="every", **only_parents).owns(ConfigMap, every_owner=True).complete(every)  # type: ignore[arg-type]
    parent = await home.create("parent")
    async with home.running():
        assert await noting.news() == await every.news() == ["parent"]
        await home.create("child", owner=parent)
        assert await noting.news() == await every.news() == ["parent"]
        await home.create("cousin", owner=parent, is_controller=False)
        assert await noting.news() == []
        assert await every.news() == ["parent"]


def test_an_owner_in_another_namespace_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    @at_home
    async def scenario(home: Home) -> None:
        home.cache = Cache(home.client, namespaces=["default", "kube-system"])
        cached = CachedClient(home.client, home.cache)

        class Creating(Noting):
            async def reconcile(self, request: Request) -> None:
                owner = await cached.get(ConfigMap, request)
                # Written out: one made by as_owner() is refused.
                reference = OwnerReference(**msgspec.structs.asdict(owner.as_owner()))
                for namespace in ("default", "kube-system"):
                    for suffix in ("x", "y"):
                        metadata = ObjectMeta(
                            name=f"{request.name}-{suffix}", namespace=namespace, owner_references=[reference]
                        )
                        await cached.create(Secret(metadata=metadata))

        controller_for(home, ConfigMap, labels={"app": "web"}, max_attempts=1).owns(Secret).complete(Creating())
        await home.create("web")
        async with home.running():
            await asyncio.sleep(60)

    scenario()
    assert [message for message in caplog.messages if "as its owner" in message] == [
        'Secret "kube-system/web-x" names ConfigMap "web" in namespace "default" as its owner: an owner must be in the '
        "same namespace, and the garbage collector deletes such objects. Use a label, and watches(Secret, mapped(…))"
    ]


@at_home
async def test_other_kinds_can_be_watched_whole_or_by_their_metadata(home: Home) -> None:
    noting = Noting()
    missing_kind = Dynamic.of("example.com/v1", "Gadget", plural="gadgets", namespaced=True)
    controller_for(home, ConfigMap).watches(Secret, for_object, where=in_namespaces("default")).watches_metadata(
        Secret, for_object, labels={"app": "web"}
    ).watches(missing_kind, for_object, optional=True).owns(missing_kind, optional=True, namespace="other").complete(
        noting
    )
    async with home.running():
        scopes = {informer.scope for informer in home.cache.informers()}
        kinds = {(scope.gvk.kind, scope.namespace, scope.labels, scope.metadata_only) for scope in scopes}
        assert kinds == {
            ("ConfigMap", "default", "", False),
            ("Secret", "default", "", False),
            ("Secret", "default", "app=web", True),
            ("Gadget", "default", "", False),
            ("Gadget", "other", "", False),
        }
        await home.client.create(Secret(metadata=ObjectMeta(name="token", namespace="default")))
        assert await noting.news() == ["token"]


@at_home
async def test_a_watched_kind_can_be_transformed(home: Home) -> None:
    def as_it_is(raw: bytes) -> bytes:
        return raw

    controller_for(home, ConfigMap).watches(Secret, for_object, transform=as_it_is).complete(Noting())
    async with home.running():
        scopes: list[Scope] = [informer.scope for informer in home.cache.informers()]
        assert [scope.transform for scope in scopes] == [None, as_it_is]


@at_home
async def test_keys_can_come_from_any_source(home: Home) -> None:
    noting = Noting()
    channel = Channel[Request]()
    built = controller_for(home, ConfigMap).source(channel).complete(noting)
    assert built.sources[1] is channel
    async with home.running():
        channel.send(Request("", "sent"))
        assert await noting.news() == ["sent"]


# A plain function loses every event, or finds out at the first: it is refused where it is given.


def no_predicate(event: object) -> bool:
    return True


@at_home
async def test_a_plain_function_is_no_predicate(home: Home) -> None:
    refused = r"no_predicate .* is not a predicate: mark .* with @predicate"
    builder = controller_for(home, ConfigMap)
    with pytest.raises(TypeError, match=refused):
        controller_for(home, ConfigMap, where=no_predicate)  # type: ignore[arg-type]  # that is what is tested
    with pytest.raises(TypeError, match=refused):
        builder.owns(Secret, where=no_predicate)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=refused):
        builder.watches(Secret, for_object, where=no_predicate)  # type: ignore[arg-type]


@at_home
async def test_a_plain_function_is_no_handler(home: Home) -> None:
    def of_the_object(secret: Secret) -> list[Request]:
        return []

    with pytest.raises(TypeError, match=r"is not a handler of Secret: mark a function of the object with @mapped"):
        controller_for(home, ConfigMap).watches(Secret, of_the_object)  # type: ignore[arg-type]  # that is what is tested


# The status of a controller's own kind


class GadgetSpec(Model):
    size: int = 1


class GadgetStatus(Model):
    seen: int = 0


@resource("builder.example.com/v1")
class Gadget(Resource[GadgetSpec, GadgetStatus]):
    """A kind with a status."""


async def installed(client: Client) -> None:
    await client.create(from_json(CustomResourceDefinition, crd_of(Gadget)))
    await asyncio.sleep(60)


class Counting:
    """Counts its reconciles in the status."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.times: list[float] = []

    async def reconcile(self, request: Request) -> Result:
        self.times.append(asyncio.get_running_loop().time())
        gadget = await self.client.get(Gadget, request)
        gadget.status.seen += 1
        await self.client.status.patch(gadget)
        return Result(requeue_after=30)


def gadget() -> Gadget:
    return Gadget(metadata=ObjectMeta(name="a", namespace="default"), spec=GadgetSpec())


@at_home
async def test_a_status_that_changes_each_time_does_not_defeat_requeue_after(home: Home) -> None:
    await installed(home.client)
    counting = Counting(CachedClient(home.client, home.cache))
    controller_for(home, Gadget).complete(counting)
    await home.client.create(gadget())
    async with home.running():
        began = counting.times[0]
        await asyncio.sleep(299 - (asyncio.get_running_loop().time() - began))
        assert [round(when - began) for when in counting.times] == [30 * number for number in range(10)]


@at_home
async def test_an_own_kind_is_watched_with_its_status_when_where_says_so(home: Home) -> None:
    await installed(home.client)
    noting, everything = Noting(), Noting()
    controller_for(home, Gadget).complete(noting)
    controller_for(home, Gadget, name="everything", where=resource_version_changed).complete(everything)
    created = await home.client.create(gadget())
    async with home.running():
        assert await noting.news() == await everything.news() == ["a"]
        created.status.seen = 1
        created = await home.client.status.update(created)
        assert (await noting.news(), await everything.news()) == ([], ["a"])
        created.metadata.finalizers = ["example.com/held"]
        created = await home.client.update(created)
        assert (await noting.news(), await everything.news()) == (["a"], ["a"])
        await home.client.delete(created)
        assert (await noting.news(), await everything.news()) == (["a"], ["a"])


@at_home
async def test_a_reconciler_can_follow_every_event_of_its_objects(home: Home) -> None:
    class Following(Noting):
        def __init__(self) -> None:
            super().__init__()
            self.followed: list[str] = []
            self.own_events = Handler(self.follow)

        def follow(self, event: Event[Object]) -> list[Request]:
            self.followed.append(event.verb)
            return [Request("default", "another")]

    await installed(home.client)
    following = Following()
    controller_for(home, Gadget, where=labels_changed, namespace="default").complete(following)
    created = await home.client.create(gadget())
    async with home.running():
        assert [informer.scope.namespace for informer in home.cache.informers()] == ["default"]
        assert (await following.news(), following.followed) == (["a", "another"], ["added"])
        created.status.seen = 1
        await home.client.status.update(created)
        assert (await following.news(), following.followed) == (["another"], ["added", "updated"])


@at_home
async def test_the_status_of_an_owned_object_matters(home: Home) -> None:
    await installed(home.client)
    noting = Noting()
    controller_for(home, ConfigMap).owns(Gadget).complete(noting)
    owner = await home.create("owner")
    owned = gadget()
    owned.metadata.owner_references = [owner.as_owner()]
    owned = await home.client.create(owned)
    async with home.running():
        assert await noting.news() == ["owner"]
        owned.status.seen = 1
        await home.client.status.update(owned)
        assert await noting.news() == ["owner"]


# Optional kinds


def test_an_optional_kind_that_gets_installed_enqueues_all_objects(caplog: pytest.LogCaptureFixture) -> None:
    @at_home
    async def scenario(home: Home) -> None:
        noting = Noting()
        controller_for(home, ConfigMap).owns(Gadget, optional=True).complete(noting)
        for name in "ab":
            await home.create(name)
        async with home.running():
            assert await noting.news() == ["a", "b"]
            await asyncio.sleep(600)
            assert await noting.news() == []
            logged = [record for record in caplog.records if "gadgets" in record.getMessage()]
            assert [record.levelname for record in logged] == ["INFO"]
            await installed(home.client)
            assert await noting.news() == ["a", "b"]
            await home.client.delete(CustomResourceDefinition, "gadgets.builder.example.com")
            await asyncio.sleep(600)
            assert await noting.news() == []
            await installed(home.client)
            assert await noting.news() == ["a", "b"]

    caplog.set_level("INFO", "kubewright")
    scenario()
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


@at_home
async def test_an_optional_kind_that_gets_installed_leaves_the_queue_of_a_standby_empty(home: Home) -> None:
    """It holds nothing that could be gone when it begins to work."""
    noting = Noting()
    built = controller_for(home, ConfigMap).owns(Gadget, optional=True).complete(noting)
    for name in "ab":
        await home.create(name)
    standby = [asyncio.create_task(home.cache.run()), asyncio.create_task(built.run_sources())]
    await asyncio.sleep(60)
    await installed(home.client)
    await asyncio.sleep(60)
    assert len(built.queue) == 0
    await home.client.delete(ConfigMap, "a", namespace="default")
    standby.append(asyncio.create_task(built.run_workers()))
    assert await noting.news() == ["b"]
    for task in standby:
        task.cancel()
    await asyncio.wait(standby)


def test_a_required_kind_that_is_not_installed_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    @at_home
    async def scenario(home: Home) -> None:
        controller_for(home, ConfigMap).owns(Gadget).complete(Noting())
        async with home.running():
            await asyncio.sleep(60)

    scenario()
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "Gadget is not installed: the server knows no such kind (yet); waiting for it"
    ]


# Objects that do not fit their type


class Warnings:
    """A recorder that keeps its events."""

    def __init__(self) -> None:
        self.components: list[str] = []
        self.events: list[tuple[str, str, str]] = []

    def of(self, component: str) -> Warnings:
        self.components.append(component)
        return self

    def warning(self, regarding: Object, reason: str, note: str) -> None:
        kind = resource_info(type(regarding)).gvk.kind
        self.events.append((f"{kind} {regarding.metadata.name} {bool(regarding.metadata.uid)}", reason, note))


class Reading:
    """Reads one object, by default the one that it reconciles."""

    def __init__(self, client: Client, name: str | None = None) -> None:
        self.client = client
        self.name = name
        self.times: list[float] = []

    async def reconcile(self, request: Request) -> None:
        self.times.append(asyncio.get_running_loop().time())
        await self.client.get(Gadget, self.name or request.name, namespace=request.namespace)


AnyGadget = Dynamic.of("builder.example.com/v1", "Gadget", plural="gadgets", namespaced=True)


async def without_validation(client: Client) -> None:
    """The kind, by a definition that takes any size."""
    definition = from_json(CustomResourceDefinition, crd_of(Gadget))
    for version in definition.spec.versions:
        assert version.schema is not None
        version.schema.open_apiv3_schema = JSONSchemaProps(type="object", x_kubernetes_preserve_unknown_fields=True)
    await client.create(definition)
    await asyncio.sleep(60)


def unfit(name: str) -> Dynamic:
    return AnyGadget(metadata=ObjectMeta(name=name, namespace="default"), content={"spec": {"size": "large"}})


def test_an_object_that_does_not_fit_its_type_is_not_retried_until_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    @at_home
    async def scenario(home: Home) -> None:
        await without_validation(home.client)
        warnings = Warnings()
        reading = Reading(CachedClient(home.client, home.cache))
        built = controller_for(home, Gadget).complete(reading)
        built.recorder = warnings.of
        await home.client.create(unfit("a"))
        async with home.running():
            await asyncio.sleep(3600)
            assert len(reading.times) == 1
            statistics = built.statistics
            assert (statistics.terminal_errors, statistics.errors) == (1, 1)
            assert warnings.components == ["gadget"]
            ((regarding, reason, note),) = warnings.events
            assert (regarding, reason) == ("Gadget a True", "InvalidObject")
            assert "spec.size" in note
            (record,) = caplog.records
            assert record.getMessage().startswith("[gadget default/a] reconcile failed in ")
            assert '(Gadget added), not retried until the next change: Gadget "default/a": not' in record.getMessage()
            # A change of the status alone is one, too: it may be what did not fit.
            there = await home.client.get(AnyGadget, "a", namespace="default")
            there.content["status"] = {"seen": 1}
            await home.client.status.update(there)
            await asyncio.sleep(3600)
            assert len(reading.times) == 2
            await home.client.patch(AnyGadget, "a", MergePatch({"spec": {"size": 1}}), namespace="default")
            await asyncio.sleep(10)
            assert len(reading.times) == 3
            assert statistics.results["success"] == 1

    scenario()


def _is_readable(body: bytes) -> bool:
    try:
        msgspec.json.decode(body)
    except RecursionError:
        return False
    return True


def test_an_object_that_is_nested_too_deeply_to_be_decoded_is_not_retried_until_it_changes() -> None:
    @at_home
    async def scenario(home: Home) -> None:
        await without_validation(home.client)
        warnings = Warnings()
        reading = Reading(CachedClient(home.client, home.cache))
        built = controller_for(home, Gadget).complete(reading)
        built.recorder = warnings.of
        deep = b"%b%b" % (b"[" * 2000, b"]" * 2000)
        metadata = b'"metadata":{"name":"deep","namespace":"default"}'
        kind = b'"apiVersion":"builder.example.com/v1","kind":"Gadget"'
        await home.client._operations.session.request(
            "POST",
            "/apis/builder.example.com/v1/namespaces/default/gadgets",
            body=b'{%b,%b,"spec":{"deep":%b}}' % (kind, metadata, deep),
            request="create",
            headers=[("content-type", "application/json")],
        )
        async with home.running():
            await asyncio.sleep(3600)
            # Python 3.13 reads deeper than those before it.
            is_readable = _is_readable(deep)
            assert len(reading.times) == 1
            assert built.statistics.terminal_errors == (0 if is_readable else 1)
            assert [regarding for regarding, _, _ in warnings.events] == ([] if is_readable else ["Gadget deep True"])
            await home.client.delete(Gadget, "deep", namespace="default")
            await asyncio.sleep(10)
            assert len(reading.times) > 1

    scenario()


def test_a_repaired_object_is_watched_as_any_other() -> None:
    @at_home
    async def scenario(home: Home) -> None:
        await without_validation(home.client)
        reading = Reading(CachedClient(home.client, home.cache))
        controller_for(home, Gadget).complete(reading)
        await home.client.create(unfit("a"))
        async with home.running():
            await asyncio.sleep(10)
            await home.client.patch(AnyGadget, "a", MergePatch({"spec": {"size": 1}}), namespace="default")
            await asyncio.sleep(10)
            assert len(reading.times) == 2
            there = await home.client.get(AnyGadget, "a", namespace="default")
            there.content["status"] = {"seen": 1}
            await home.client.status.update(there)
            await asyncio.sleep(10)
            assert len(reading.times) == 2

    scenario()


@pytest.mark.parametrize("own", [gadget(), unfit("a")], ids=["fits", "does not fit either"])
def test_an_error_about_another_undecodable_object_is_retried(own: Object) -> None:
    """It may be mended without the reconciled one changing."""

    @at_home
    async def scenario(home: Home) -> None:
        await without_validation(home.client)
        reading = Reading(CachedClient(home.client, home.cache), "other")
        built = controller_for(home, Gadget, fields={"metadata.name": "a"}).complete(reading)
        await home.client.create(own)
        await home.client.create(unfit("other"))
        async with home.running():
            await asyncio.sleep(60)
            assert len(reading.times) > 10
            assert built.statistics.terminal_errors == 0

    scenario()
