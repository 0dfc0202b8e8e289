"""An apply through the cache: sent when it would change something, and only then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from copy import deepcopy
from datetime import UTC, datetime
from random import Random
from typing import Annotated, TypeVar

import pytest
from msgspec import UNSET, UnsetType

from kubewright.api.apps.v1 import Deployment, StatefulSet
from kubewright.api.codec import decode, from_json
from kubewright.api.coordination.v1 import Lease
from kubewright.api.core.v1 import ConfigMap, PodTemplate, Secret, Service
from kubewright.api.errors import KubernetesError
from kubewright.api.markers import JSONValue, ListMap
from kubewright.api.meta import Condition, ObjectMeta
from kubewright.api.model import Model
from kubewright.api.partials import partial
from kubewright.api.rbac.v1 import Role
from kubewright.api.resources import Object, Resource, resource
from kubewright.cache import Cache, CachedClient
from kubewright.cache.applied import SettledApplies
from kubewright.cache.entry import applied_marker, parse_entry
from kubewright.client import Client, MergePatch
from kubewright.client.errors import NotFound
from kubewright.controlplane import ControlPlane

Config = dict[str, JSONValue]
T = TypeVar("T", bound=Object)


class World:
    """A program with a cache, and the others who write to the same objects."""

    def __init__(self, namespace: str, cache: Cache, own: Client, other: Client) -> None:
        self.namespace = namespace
        self.cache = cache
        self.own = own
        self.other = other
        self.cached = CachedClient(own, cache)

    def object(self, kind: type[T], content: Config) -> T:
        metadata = {"name": "a", "namespace": self.namespace}
        given = content.get("metadata", {})
        assert isinstance(given, dict)
        return from_json(kind, {**content, "metadata": {**metadata, **given}})

    async def is_sent(self, obj: Object, *, force: bool = True, subresource: str = "") -> bool:
        """Apply, and see whether that took a request, as `applied` foresees."""
        before, foreseen = self._patches(), None if subresource else await self.cached.applied(obj)
        await (self.cached.subresource(subresource) if subresource else self.cached).apply(obj, force=force)
        is_sent = self._patches() > before
        assert subresource or is_sent == (foreseen is None)
        return is_sent

    async def caught_up(self, kind: type[Object]) -> str:
        """Wait until the cache shows what is there; the revision of that."""
        try:
            live = await self.own.get(kind, "a", namespace=self.namespace)
        except NotFound:
            return ""
        revision = live.metadata.resource_version
        async with asyncio.timeout(30):
            while await self._shown(kind) != revision:
                await asyncio.sleep(0.001)
        return revision

    async def _shown(self, kind: type[Object]) -> str:
        found = await self.cached.find(kind, "a", namespace=self.namespace, consistency="cached")
        return found.metadata.resource_version if found is not None else ""

    def _patches(self) -> int:
        return sum(count for (_, method, _), count in self.own.answers.items() if method == "PATCH")


@asynccontextmanager
async def world(control_plane: ControlPlane, namespace: str, *kinds: type[Object]) -> AsyncIterator[World]:
    async with control_plane.client() as own, control_plane.client() as admin, asyncio.TaskGroup() as group:
        cache = Cache(own)
        task = group.create_task(cache.run())
        for kind in kinds:
            await cache.watch(kind, namespace=namespace).synced()
        yield World(namespace, cache, own, admin)
        task.cancel()


CONTAINER: Config = {
    "name": "app",
    "image": "app:1",
    "command": ["run", "fast"],
    "ports": [{"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}],
    "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}},
    "env": [{"name": "A", "value": "1"}],
    "readinessProbe": {"httpGet": {"port": "web"}},
    "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
}
TEMPLATE: Config = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {
        "nodeSelector": {"disk": "fast"},
        "containers": [CONTAINER],
        "volumes": [{"name": "cache", "emptyDir": {}}],
    },
}
SETTLED: list[tuple[type[Object], Config]] = [
    (ConfigMap, {"metadata": {"labels": {"app": "a"}, "annotations": {"note": "x"}}, "data": {"k": "v"}}),
    (PodTemplate, {"template": TEMPLATE}),
    (Deployment, {"spec": {"replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}}),
    (Service, {"spec": {"selector": {"app": "a"}, "ports": [{"name": "w", "port": 80, "targetPort": "web"}]}}),
    (Secret, {"stringData": {"user": "me"}, "data": {"key": "dmFsdWU="}}),
    (Role, {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]}),
    (Lease, {"spec": {"holderIdentity": "a", "renewTime": "2026-01-01T02:00:00.000000+02:00"}}),
]


@pytest.mark.parametrize(("kind", "content"), SETTLED, ids=[kind.__name__ for kind, _ in SETTLED])
async def test_an_apply_of_what_is_applied_already_sends_nothing_even_by_another_process(
    kind: type[Object], content: Config, control_plane: ControlPlane, namespace: str
) -> None:
    async with world(control_plane, namespace, kind) as here:
        obj = here.object(kind, content)
        made = await here.own.apply(obj)
        await here.caught_up(kind)
        assert not await here.is_sent(obj)
        again = await here.cached.apply(obj)
        assert again.metadata.uid == made.metadata.uid


CHANGES: dict[str, Callable[[Config], Config]] = {
    "another value": lambda spec: {**spec, "containers": [{**CONTAINER, "image": "app:2"}]},
    "another amount": lambda spec: {**spec, "containers": [{**CONTAINER, "resources": {"requests": {"cpu": "1"}}}]},
    "a field more": lambda spec: {**spec, "hostname": "a"},
    "a field less": lambda spec: {name: spec[name] for name in spec if name != "nodeSelector"},
    "an item more": lambda spec: {**spec, "containers": [CONTAINER, {"name": "b", "image": "b"}]},
    "a port of another protocol": lambda spec: {
        **spec,
        "containers": [{**CONTAINER, "ports": [{"containerPort": 80, "protocol": "SCTP"}]}],
    },
    "an item less": lambda spec: {**spec, "containers": [{**CONTAINER, "ports": [{"containerPort": 80}]}]},
    "other items of an atomic map": lambda spec: {**spec, "nodeSelector": {}},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_an_apply_that_changes_something_is_sent(
    change: Callable[[Config], Config], embedded_control_plane: ControlPlane
) -> None:
    async with world(embedded_control_plane, "default", PodTemplate) as here:
        await here.cached.apply(here.object(PodTemplate, {"template": TEMPLATE}))
        before = await here.caught_up(PodTemplate)
        spec = TEMPLATE["spec"]
        assert isinstance(spec, dict)
        assert await here.is_sent(here.object(PodTemplate, {"template": {**TEMPLATE, "spec": change(spec)}}))
        assert await here.caught_up(PodTemplate) != before


async def test_values_that_the_server_fills_in_cost_one_request_and_no_more(
    control_plane: ControlPlane, namespace: str
) -> None:
    storage: Config = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim: Config = {"metadata": {"name": "data"}, "spec": storage}
    spec: Config = {"serviceName": "a", "replicas": 0, "selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}
    async with world(control_plane, namespace, StatefulSet) as here:
        obj = here.object(StatefulSet, {"spec": {**spec, "volumeClaimTemplates": [claim]}})
        assert await here.is_sent(obj)
        await here.caught_up(StatefulSet)
        await here.cached.apply(obj)
        assert not await here.is_sent(obj)


async def test_a_field_that_another_manager_took_is_sent_again(control_plane: ControlPlane, namespace: str) -> None:
    async with world(control_plane, namespace, ConfigMap) as here:
        obj = here.object(ConfigMap, {"data": {"a": "1", "b": "1"}})
        await here.cached.apply(obj)
        patch = MergePatch({"data": {"a": "2"}})
        await here.other.patch(ConfigMap, "a", patch, namespace=namespace, field_manager="other")
        await here.caught_up(ConfigMap)
        assert await here.is_sent(obj)
        await here.caught_up(ConfigMap)
        assert not await here.is_sent(obj)


async def test_own_writes_count_before_the_watch_brings_them(embedded_control_plane: ControlPlane) -> None:
    async with world(embedded_control_plane, "default", ConfigMap) as here:
        obj = here.object(ConfigMap, {"data": {"a": "1"}})
        assert [await here.is_sent(obj) for _ in range(3)] == [True, False, False]


async def test_partial_objects_are_compared_by_what_is_set(embedded_control_plane: ControlPlane) -> None:
    async with world(embedded_control_plane, "default", Service) as here:
        whole = here.object(Service, {"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}})
        await here.other.create(whole)
        service = partial(Service, name="a", namespace="default")
        service.spec.selector = {"app": "a"}
        await here.caught_up(Service)
        assert [await here.is_sent(service) for _ in range(3)] == [True, False, False]
        service.metadata.labels = {"tier": "front"}
        assert [await here.is_sent(service) for _ in range(3)] == [True, False, False]


async def test_what_the_cache_does_not_know_is_sent(embedded_control_plane: ControlPlane) -> None:
    async with world(embedded_control_plane, "default") as here:
        obj = here.object(ConfigMap, {"data": {"a": "1"}})
        assert [await here.is_sent(obj) for _ in range(2)] == [True, True]
    async with world(embedded_control_plane, "default", ConfigMap) as here:
        before = here._patches()
        await here.cached.apply(obj, dry_run=True)
        await here.cached.apply(obj, field_manager="another")
        assert here._patches() == before + 2


class Port(Model):
    port: int
    protocol: str = "TCP"


class Run(Model, tag="Run"):
    name: str
    phase: str = "main"
    command: str


class Pause(Model, tag="Pause"):
    name: str
    phase: str = "main"


class AppliedSpec(Model):
    steps: Annotated[list[Run | Pause], ListMap("name", "phase")] | None = None
    ports: Annotated[list[Port], ListMap("port", "protocol")] | None = None
    limits: dict[str, str] | UnsetType | None = UNSET


@resource("applied.example.com/v1")
class Applied(Object):
    spec: AppliedSpec | None = None


async def test_keys_that_the_definition_fills_in_need_not_be_applied(
    control_plane: ControlPlane, namespace: str, install: Callable[[type[Object]], Awaitable[None]]
) -> None:
    await install(Applied)
    async with world(control_plane, namespace, Applied) as here:
        ports: list[JSONValue] = [{"port": 80}, {"port": 80, "protocol": "UDP"}]
        steps: list[JSONValue] = [{"type": "Run", "name": "a", "command": "x"}, {"type": "Pause", "name": "b"}]
        obj = here.object(Applied, {"spec": {"ports": ports, "steps": steps}})
        await here.own.apply(obj)
        await here.caught_up(Applied)
        assert not await here.is_sent(obj)
        assert await here.is_sent(here.object(Applied, {"spec": {"ports": [{"port": 80}]}}))


async def test_an_apply_that_takes_effect_when_it_is_repeated_is_repeated(
    control_plane: ControlPlane, namespace: str, install: Callable[[type[Object]], Awaitable[None]]
) -> None:
    """A server leaves null in place of an empty map that is applied for the first time."""
    await install(Applied)
    async with world(control_plane, namespace, Applied) as here:
        await here.other.create(here.object(Applied, {"spec": {"limits": None}}), field_manager="other")
        empty = here.object(Applied, {"spec": {"ports": [{"port": 80, "protocol": "UDP"}], "limits": {}}})
        await here.cached.apply(here.object(Applied, {"spec": {"ports": [{"port": 80}]}}))
        while await here.is_sent(empty):
            await here.caught_up(Applied)

        before = await here.other.get(Applied, "a", namespace=namespace)
        assert before.spec is not None
        assert before.spec.limits == {}
        assert (await here.other.apply(empty, force=True)).metadata.resource_version == before.metadata.resource_version


def test_what_is_remembered_of_applies_is_bounded_and_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubewright.cache.applied._MAX_SETTLED", 2)
    settled, sent = SettledApplies("me"), b'{"data":{"a":"1"}}'
    owned = '{"manager":"me","operation":"Apply","apiVersion":"v1","fieldsV1":{"f:data":{"f:a":{}}}}'

    def answer(name: str) -> bytes:
        metadata = f'{{"name":"{name}","namespace":"n","resourceVersion":"1","managedFields":[{owned}]}}'
        return f'{{"apiVersion":"v1","kind":"ConfigMap","metadata":{metadata},"data":{{"a":"changed"}}}}'.encode()

    entries = {name: parse_entry(answer(name), applied_marker("me")) for name in "abc"}
    for name, entry in entries.items():
        settled.answered(ConfigMap, sent, entry, decode(ConfigMap, answer(name)))
    assert [settled.is_settled(ConfigMap, sent, entry) for entry in entries.values()] == [False, True, True]


# Whatever happened before: what is not sent would have changed nothing


def _some(random: Random, *values: JSONValue) -> list[JSONValue]:
    """Some of these values, in any order."""
    return random.sample(values, random.randint(0, len(values)))


def _port(random: Random, number: int) -> Config:
    protocol = random.choice([None, "TCP", "UDP"])
    port: Config = {"containerPort": number} if protocol is None else {"containerPort": number, "protocol": protocol}
    return port if random.random() < 0.7 else {**port, "name": f"p{number}"}


def _variable(random: Random, name: str) -> Config:
    field: Config = {"fieldRef": {"fieldPath": "metadata.name"}}
    return {"name": name, "valueFrom": field} if random.random() < 0.3 else {"name": name, "value": random.choice("12")}


def _container(random: Random, name: str) -> Config:
    container: Config = {"name": name, "image": random.choice(["x:1", "x:2"])}
    optional: Config = {
        "command": [random.choice("ab"), "c"],
        "ports": [_port(random, number) for number in random.sample([80, 81], random.randint(0, 2))],
        "env": [_variable(random, name) for name in random.sample("AB", random.randint(0, 2))],
        "resources": {"requests": {"cpu": random.choice(["1", "1000m", "500m"])}},
        "readinessProbe": {"httpGet": {"port": random.choice([80, "80"])}},
        "securityContext": {},
    }
    return container | {name: value for name, value in optional.items() if random.random() < 0.4}


def _config(random: Random) -> Config:
    spec: Config = {"containers": [_container(random, name) for name in random.sample("xyz", random.randint(1, 3))]}
    optional: Config = {
        "nodeSelector": {"disk": random.choice(["fast", "slow"])},
        "tolerations": [{"key": random.choice("ab"), "operator": "Exists"}],
        "imagePullSecrets": [{"name": str(name)} for name in _some(random, "s", "t")],
        "volumes": [{"name": "v", "emptyDir": {}}] if random.random() < 0.5 else [],
    }
    spec |= {name: value for name, value in optional.items() if random.random() < 0.4}
    metadata: Config = {
        "labels": {str(name): random.choice("12") for name in _some(random, "a", "b")},
        "annotations": {"note": random.choice("12")},
        "finalizers": [f"example.com/{name}" for name in _some(random, "a", "b")],
    }
    return {
        "metadata": {name: value for name, value in metadata.items() if random.random() < 0.5},
        "template": {"metadata": {"labels": {"app": "a"}}, "spec": spec},
    }


def _nodes(content: JSONValue) -> Iterator[Config | list[JSONValue]]:
    if isinstance(content, dict | list):
        yield content
        for inner in content.values() if isinstance(content, dict) else content:
            yield from _nodes(inner)


def _edited(random: Random, config: Config) -> Config:
    """The same but for one difference: something is gone, or in another order, or as in another configuration."""
    edited, other = deepcopy(config), _config(random)
    match random.choice([node for node in _nodes(edited) if node]):
        case list() as items if random.random() < 0.6:
            random.shuffle(items)
        case list() as items:
            del items[random.randrange(len(items))]
        case dict() as fields if random.random() < 0.4:
            del fields[random.choice(list(fields))]
        case _:
            part = random.choice(["metadata", "template"])
            edited[part] = other[part]
    return edited


Write = Callable[[World, Random, Config], Awaitable[object]]


async def _apply_as_another_manager(here: World, random: Random, config: Config) -> None:
    obj = here.object(PodTemplate, random.choice([config, _edited(random, config), _config(random)]))
    await here.other.apply(obj, field_manager="other", force=random.random() < 0.5)


async def _apply_as_another_process(here: World, random: Random, config: Config) -> None:
    obj = here.object(PodTemplate, random.choice([_edited(random, config), _config(random)]))
    await here.other.apply(obj, force=random.random() < 0.5)


async def _update(here: World, random: Random, config: Config) -> None:
    template = await here.other.get(PodTemplate, "a", namespace=here.namespace)
    spec = template.template.spec
    assert spec is not None
    random.shuffle(spec.containers)
    random.choice(spec.containers).image = "x:3"
    template.metadata.labels = {"a": random.choice("13")}
    await here.other.update(template, field_manager="other")


async def _merge_patch(here: World, random: Random, config: Config) -> None:
    labels: Config = {"a": random.choice(["1", "2", None]), "c": "1"}
    annotations: list[JSONValue] = [None, {"note": "1"}]
    content: Config = {"metadata": {"labels": labels, "annotations": random.choice(annotations)}}
    manager = random.choice(["other", "kubewright"])
    patch = MergePatch(content)
    await here.other.patch(PodTemplate, "a", patch, namespace=here.namespace, field_manager=manager)


async def _forget_managers(here: World, random: Random, config: Config) -> None:
    patch = MergePatch({"metadata": {"managedFields": [{}]}})
    await here.other.patch(PodTemplate, "a", patch, namespace=here.namespace)


def _content(template: PodTemplate) -> PodTemplate:
    """Everything but times: a server that drops an empty map takes it for a change each second, and writes the time."""
    content = deepcopy(template)
    content.metadata.resource_version = ""
    for fields in content.metadata.managed_fields:
        fields.time = None
    content.metadata.managed_fields.sort(key=str)  # by time, otherwise
    return content


FOREIGN: list[Write] = [_apply_as_another_manager, _apply_as_another_process, _update, _merge_patch, _forget_managers]


@pytest.mark.parametrize("seed", range(8))
async def test_whatever_others_write_what_is_not_sent_would_have_changed_nothing(
    seed: int, control_plane: ControlPlane, namespace: str
) -> None:
    random, skipped = Random(seed), 0
    async with world(control_plane, namespace, PodTemplate) as here:
        valid = _config(random)
        for _ in range(40):
            if random.random() < 0.4:
                with suppress(KubernetesError):
                    await random.choice(FOREIGN)(here, random, valid)
            config = _edited(random, valid) if random.random() < 0.5 else valid
            await here.caught_up(PodTemplate)
            force = random.random() < 0.8
            try:
                is_sent = await here.is_sent(obj := here.object(PodTemplate, config), force=force)
            except KubernetesError:
                continue
            valid = config
            if is_sent:
                # Once it is answered, and answered once more where the server has its own idea of it, it is settled.
                await here.caught_up(PodTemplate)
                await here.is_sent(obj, force=force)
                assert not await here.is_sent(obj, force=force), config
            else:
                skipped += 1
                before = await here.other.get(PodTemplate, "a", namespace=namespace)
                assert _content(await here.other.apply(obj, force=force)) == _content(before), config
        assert skipped
        await here.other.patch(PodTemplate, "a", MergePatch({"metadata": {"finalizers": None}}), namespace=namespace)


class PartsStatus(Model):
    phase: str = ""
    replicas: int = 0
    conditions: Annotated[list[Condition], ListMap("type")] = []


@resource("applied.example.com/v1")
class Parts(Resource[Model, PartsStatus]):
    """Is applied in two parts."""


def parts(namespace: str, phase: str) -> Parts:
    made = Parts(metadata=ObjectMeta(name="a", namespace=namespace), spec=Model())
    when = datetime(2026, 1, 1, tzinfo=UTC)
    ready = Condition(type="Ready", status="True", reason="Up", message="", last_transition_time=when)
    made.status = PartsStatus(phase=phase, replicas=1, conditions=[ready])
    return made


async def test_a_status_that_is_so_already_is_not_sent_again(
    control_plane: ControlPlane, namespace: str, install: Callable[[type[Object]], Awaitable[None]]
) -> None:
    await install(Parts)
    async with world(control_plane, namespace, Parts) as here:
        up, down = parts(namespace, "Up"), parts(namespace, "Down")
        assert [await here.is_sent(up) for _ in range(2)] == [True, False]
        assert [await here.is_sent(up, subresource="status") for _ in range(3)] == [True, False, False]
        assert (await here.cached.status.apply(up)).status == up.status
        assert not await here.is_sent(up), "the object itself is another part"
        assert [await here.is_sent(down, subresource="status") for _ in range(2)] == [True, False]
        patch = MergePatch({"status": {"phase": "Up"}})
        await here.other.status.patch(Parts, "a", patch, namespace=namespace, field_manager="other")
        await here.caught_up(Parts)
        assert [await here.is_sent(down, subresource="status") for _ in range(2)] == [True, False]
        less = partial(Parts, name="a", namespace=namespace)
        less.status.phase = "Down"
        assert [await here.is_sent(less, subresource="status") for _ in range(2)] == [True, False]
        live = await here.own.get(Parts, "a", namespace=namespace)
        assert (live.status.phase, live.status.conditions) == ("Down", [])
