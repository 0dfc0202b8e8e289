"""What the builder puts together, as seen from the controller that comes out and from what the cache then watches."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import pytest

from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.api.dynamic import Dynamic
from kubewright.api.meta import ObjectMeta
from kubewright.cache import Cache
from kubewright.cache.informer import Scope
from kubewright.client import Client
from kubewright.controller.builder import controller
from kubewright.controller.context import current
from kubewright.controller.controller import Controller
from kubewright.controller.handler import for_object
from kubewright.controller.predicate import in_namespaces, labels_changed
from kubewright.controller.ratelimit import ExponentialBackoff
from kubewright.controller.reconcile import Attempt, Request, Result
from kubewright.controller.source import Channel
from kubewright.controlplane import ControlPlane
from kubewright.testing.virtual_time import run_virtual


class Home:
    """Where a controller lives; a manager is one."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.cache = Cache(client, namespaces=["default"])
        self.added: list[Controller[Request]] = []

    def add(self, runnable: Controller[Request]) -> None:
        self.added.append(runnable)

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


class Noting:
    def __init__(self) -> None:
        self.seen: list[str] = []

    async def reconcile(self, request: Request) -> None:
        self.seen.append(request.name)

    async def news(self) -> list[str]:
        """The names of what was reconciled since it was last asked, after all that has happened."""
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
    builder = controller(home, ConfigMap)
    assert home.added == []
    built = builder.complete(Noting())
    assert home.added == [built]
    assert not home.cache.informers(), "nor watched before the start"


@at_home
async def test_the_objects_of_the_kind_are_reconciled(home: Home) -> None:
    noting = Noting()
    controller(home, ConfigMap).complete(noting)
    await home.create("old")
    async with home.running():
        assert await noting.news() == ["old"]
        await home.create("new")
        assert await noting.news() == ["new"]


@at_home
async def test_the_name_is_that_of_the_kind_unless_given(home: Home) -> None:
    assert controller(home, ConfigMap).complete(Noting()).name == "configmap"
    assert controller(home, ConfigMap, name="settings-2").complete(Noting()).name == "settings-2"


@pytest.mark.parametrize("name", ["Settings", "a_b", "-a", "a-", "a b"])
def test_a_bad_name_is_refused(name: str) -> None:
    @at_home
    async def scenario(home: Home) -> None:
        with pytest.raises(ValueError, match=f'"{name}" is not a name for a controller: expected lower-case letters'):
            controller(home, ConfigMap, name=name)

    scenario()


@at_home
async def test_the_options_reach_the_controller(home: Home) -> None:
    told: list[Attempt] = []
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

    built = controller(
        home,
        ConfigMap,
        timeout=5,
        max_attempts=2,
        limiter=ExponentialBackoff(base=7),
        debounce=3,
        needs_leader=False,
        on_error=lambda request, error, attempt: told.append(attempt),
        workers=3,
    ).complete(Failing())
    await home.create("a")
    async with home.running():
        await asyncio.sleep(100)
    assert not built.needs_leader
    assert built.statistics.workers == 3
    assert built.statistics.timeouts == 2
    assert told == [Attempt(1, False), Attempt(2, True)]
    assert [round(time, 3) for time in times] == [3, 15]
    assert kinds == ["ConfigMap"] * 2


@at_home
async def test_the_number_of_workers_may_be_given_later(home: Home) -> None:
    assert controller(home, ConfigMap).complete(Noting()).statistics.workers == 1
    assert controller(home, ConfigMap, workers=2).workers(5).complete(Noting()).statistics.workers == 5
    with pytest.raises(ValueError, match="workers=0, expected at least 1"):
        controller(home, ConfigMap).workers(0).complete(Noting())


@at_home
async def test_the_sync_timeout_reaches_the_controller(home: Home) -> None:
    assert controller(home, ConfigMap, sync_timeout=3).complete(Noting())._sync_timeout == 3


@at_home
async def test_the_watch_of_the_kind_can_be_confined_and_filtered(home: Home) -> None:
    noting = Noting()
    controller(home, ConfigMap, where=labels_changed, labels={"app": "a"}, fields={"metadata.name": "a"}).complete(
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
    controller(home, ConfigMap, namespace="kube-system").complete(Noting())
    async with home.running():
        assert [informer.scope.namespace for informer in home.cache.informers()] == ["kube-system"]


@at_home
async def test_everything_is_looked_at_again_every_so_many_seconds_or_never(home: Home) -> None:
    noting, never = Noting(), Noting()
    controller(home, ConfigMap, resync=1000).complete(noting)
    controller(home, ConfigMap, name="never", resync=None).complete(never)
    await home.create("a")
    async with home.running():
        assert await noting.news() == await never.news() == ["a"]
        await asyncio.sleep(850)
        assert await noting.news() == []
        await asyncio.sleep(230)
        assert await noting.news() == ["a"]
        assert await never.news() == []


def test_unless_given_that_is_ten_hours() -> None:
    assert inspect.signature(controller).parameters["resync"].default == 10 * 3600


@at_home
async def test_an_object_is_looked_at_when_something_happens_to_one_that_it_controls(home: Home) -> None:
    noting, every = Noting(), Noting()
    only_parents = {"fields": {"metadata.name": "parent"}}
    controller(home, ConfigMap, **only_parents).owns(ConfigMap).complete(noting)  # type: ignore[arg-type]
    controller(home, ConfigMap, name="every", **only_parents).owns(ConfigMap, every_owner=True).complete(every)  # type: ignore[arg-type]
    parent = await home.create("parent")
    async with home.running():
        assert await noting.news() == await every.news() == ["parent"]
        await home.create("child", owner=parent)
        assert await noting.news() == await every.news() == ["parent"]
        await home.create("cousin", owner=parent, is_controller=False)
        assert await noting.news() == []
        assert await every.news() == ["parent"]


@at_home
async def test_other_kinds_can_be_watched_whole_or_by_their_metadata(home: Home) -> None:
    noting = Noting()
    missing_kind = Dynamic.of("example.com/v1", "Gadget", plural="gadgets", namespaced=True)
    controller(home, ConfigMap).watches(Secret, for_object, where=in_namespaces("default")).watches_metadata(
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
async def test_a_watched_kind_can_be_cut_down(home: Home) -> None:
    def as_it_is(raw: bytes) -> bytes:
        return raw

    controller(home, ConfigMap).watches(Secret, for_object, transform=as_it_is).complete(Noting())
    async with home.running():
        scopes: list[Scope] = [informer.scope for informer in home.cache.informers()]
        assert [scope.transform for scope in scopes] == [None, as_it_is]


@at_home
async def test_keys_can_come_from_any_source(home: Home) -> None:
    noting = Noting()
    channel = Channel[Request]()
    built = controller(home, ConfigMap).source(channel).complete(noting)
    assert built.sources[1] is channel
    async with home.running():
        channel.send(Request("", "sent"))
        assert await noting.news() == ["sent"]
