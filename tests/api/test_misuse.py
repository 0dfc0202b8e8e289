"""What Python says of a call that does not fit gets the fix after it, in all places that errors pass."""

from __future__ import annotations

import asyncio
import base64
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any

import pytest

import kubewright
from kubewright.api.codec import decode_model
from kubewright.api.core.v1 import Container, Pod, PodSpec, Volume
from kubewright.api.errors import explain_misuse
from kubewright.api.meta import ObjectMeta
from kubewright.api.misuse import _WORDS
from kubewright.api.model import Model
from kubewright.cache import CachedClient
from kubewright.client import Client, Config
from kubewright.controller.builder import Builder, controller_for
from kubewright.controller.event import Event
from kubewright.controlplane import ControlPlane
from kubewright.manager import Manager
from kubewright.manager.recorder import EventRecorder

# No type checker lets these calls pass, hence Any.
kw: Any = kubewright
POD: Any = Pod(metadata=ObjectMeta(name="web"), spec=PodSpec(containers=[]))
LIST: Any = [POD]
DICT: Any = {"spec": {}}
NAME: Any = "web"
NOTHING: Any = None


def unmade(cls: type) -> Any:
    """An instance for which nothing is connected or started."""
    return object.__new__(cls)


def _raise(value: Any) -> None:
    raise value


class Ambiguous(Model):
    either: Container | Volume | None = None


client = unmade(Client)
client._operations = None
manager = unmade(Manager)

GUESSES: dict[str, tuple[Callable[[], object], str]] = {
    "labels": (lambda: client.list(Pod, label_selector="app=web"), "'label_selector': write labels="),
    "labels of a cache": (
        lambda: unmade(CachedClient).list(Pod, label_selector="app=web"),
        "'label_selector': write labels=",
    ),
    "fields": (lambda: client.list(Pod, field_selector="a=b"), "'field_selector': write fields="),
    "page size": (lambda: client.list(Pod, limit=10), "'limit': write page_size="),
    "short namespace": (lambda: client.get(Pod, "web", ns="shop"), "'ns': write namespace="),
    "namespace by position": (lambda: client.get(Pod, "web", "shop"), "write get(target, name, namespace=...)"),
    "list by position": (lambda: client.list(Pod, "shop"), "write list(kind, namespace=...)"),
    "patch by position": (lambda: client.patch(Pod, "web", "shop", {}), "write patch(target, name, patch, namespace="),
    "grace period": (lambda: client.delete(Pod, "web", grace_period_seconds=0), "write grace_period="),
    "propagation": (lambda: client.delete(Pod, "web", propagation_policy="Orphan"), "write propagation="),
    "timeout of a watch": (lambda: client.watch(Pod, timeout_seconds=5), "write timeout="),
    "misspelt": (lambda: client.list(Pod, namspace="shop"), "write namespace="),
    "no such keyword": (lambda: client.create(body=POD), "it takes obj, dry_run, field_manager, field_validation"),
    "namespace of an object": (lambda: client.create(POD, namespace="x"), "write metadata=ObjectMeta(namespace=...)"),
    "official client": (
        lambda: client.read_namespaced_pod("web", "shop"),
        "write client.get(Kind, name, namespace=...)",
    ),
    "official list": (lambda: client.list_namespaced_pod("shop"), "write client.list(Kind, namespace=...)"),
    "status": (lambda: client.update_status(POD), "write client.status.update(obj)"),
    "replace": (lambda: client.replace(POD), "write client.update(obj)"),
    "create or update": (lambda: client.create_or_update(POD), "write client.apply(obj)"),
    "misspelt verb": (lambda: client.delet(POD), "did you mean 'delete'?"),
    "status is called": (lambda: client.status().update(POD), "write client.status.update(obj)"),
    "client in with": (lambda: client.__enter__(), "write async with Client() as client"),
    "manager in with": (lambda: manager.__aenter__(), "write async with manager.running()"),
    "start": (lambda: manager.start(), "write await manager.run(), or async with manager.running()"),
    "go client": (lambda: manager.get_client(), "write manager.client"),
    "recorder is not called": (lambda: manager.recorder.normal, "recorder is a method: write recorder(...)"),
    "manager without a client": (lambda: kw.Manager(), "write Manager(client)"),
    "leader election": (lambda: kw.Manager(client, leader_election=True), "write election=LeaderElection(client, "),
    "one namespace": (lambda: kw.Manager(client, namespace="shop"), "write namespaces=[...]"),
    "bind address": (lambda: kw.Manager(client, metrics_bind_address=":1"), "write metrics_address="),
    "kubeconfig": (lambda: kw.Client(kubeconfig="x"), "write Client(Config.load(kubeconfig=...))"),
    "namespace of a client": (lambda: kw.Client(kw.Config(server="http://x"), namespace="x"), ".in_namespace(...)"),
    "workers": (lambda: kw.controller_for(manager, Pod, max_concurrent_reconciles=4), "write workers="),
    "reconciler": (lambda: kw.controller_for(manager, Pod, reconciler=print), ").complete(reconciler)"),
    "reconciler by position": (lambda: kw.controller_for(manager, Pod, print), ").complete(reconciler)"),
    "no reconciler": (lambda: unmade(Builder).complete(), "write complete(reconciler)"),
    "no handler": (lambda: unmade(Builder).watches(Pod), "write watches(Kind, mapped(function))"),
    "options of a builder": (lambda: unmade(Builder).with_options(workers=2), "keywords of controller_for"),
    "predicate is called": (lambda: kw.generation_changed(), "without parentheses: where=generation_changed"),
    "expectation is called": (lambda: kw.ready(), "without parentheses: wait_for(pod, ready)"),
    "field for Field": (lambda: kw.field("status.phase"), 'for waiting write Field("status.phase")'),
    "Field as in pydantic": (lambda: kw.Field(default=1), "write a default after the annotation"),
    "Result as in Go": (lambda: kw.Result(RequeueAfter=5), "write requeue_after="),
    "Result as in YAML": (lambda: kw.Result(requeueAfter=5), "write requeue_after="),
    "Result after a time": (lambda: kw.Result(delay=5), "write requeue_after="),
    "Result with an error": (lambda: kw.Result(error=1), "Result takes requeue, requeue_after, priority"),
    "a column as in kubebuilder": (lambda: kw.Column("Age", JSONPath=".status.age"), "write path="),
    "read": (lambda: client.read(Pod, "web"), "write client.get(Kind, name, namespace=...)"),
    "server-side apply": (lambda: client.server_side_apply(POD), "write client.apply(obj)"),
    "event": (lambda: unmade(EventRecorder).event(POD, "Normal", "A", "b"), "write .normal(obj, reason, note)"),
    "no note": (lambda: unmade(EventRecorder).normal(POD, "Started"), "write normal(regarding, reason, note)"),
    "event is no object": (lambda: unmade(Event).metadata, "write event.key, event.new_object or event.old_object"),
    "scheme": (lambda: kw.set_controller_reference(POD, POD, None), "write set_controller_reference(owner, child)"),
    "metadata as the owner": (lambda: kw.set_controller_reference(POD.metadata, POD), "give the owner itself, not a"),
    "metadata of an object": (lambda: POD.name, "write .metadata.name"),
    "name of a new object": (lambda: type(POD)(name="web"), "write Pod(metadata=ObjectMeta(name=...))"),
    "object like a dict": (lambda: POD.get("metadata"), "its fields are attributes"),
    "kind alone": (lambda: kw.Dynamic.of("Pod"), "write of(api_version, kind)"),
    "object as a dict": (lambda: POD["metadata"], "its fields are attributes: write .metadata"),
    "list of a list": (lambda: LIST.items, "it is the list of the objects itself"),
    "a structure as a dict": (lambda: DICT.spec, "from_json(Kind, {...})"),
    "a name for a key": (lambda: NAME.namespace, "write Request(namespace, name) for a key"),
    "predicates with and": (lambda: kw.generation_changed and kw.labels_changed, "combined with &, | and ~"),
    "expectations with or": (lambda: kw.ready or kw.deleted, "combined with &, | and ~"),
    "a Result is raised": (lambda: _raise(kw.Result()), "a Result is returned"),
    "group": (lambda: kw.resource(group="example.com", version="v1"), 'write @resource("group/version")'),
    "group by position": (lambda: kw.resource("example.com", "v1"), 'write @resource("group/version")'),
    "scope": (lambda: kw.resource("example.com/v1", scope="Cluster"), "write namespaced=False"),
    "control plane": (lambda: kw.ControlPlane(definitions=[]), "write ControlPlane.embedded(...) or"),
    "definitions": (lambda: kw.ControlPlane.embedded(crds=[]), "write definitions="),
    "control plane is awaited": (
        lambda: kw.ControlPlane.embedded().__await__(),
        "write async with ControlPlane.embedded() as cluster",
    ),
    "a union without tags": (
        lambda: decode_model(Ambiguous, b"{}"),
        'write class FileSource(Model, tag="File") for each of them',
    ),
    "run without a name": (lambda: kw.run(lambda manager: None), "write run(setup, name=...)"),
    "run without setup": (lambda: kw.run(), "write run(setup, name=...)"),
    "run with namespaces": (lambda: kw.run(lambda manager: None, name="x", namespaces=["a"]), "the flag --namespace"),
}


def explained_message(call: Callable[[], object]) -> str:
    try:
        call()
    except (TypeError, AttributeError) as error:
        explain_misuse(error)
        explain_misuse(error)  # as where doors are nested
        return str(error)
    pytest.fail("nothing was raised")


@pytest.mark.parametrize("guess", GUESSES)
def test_a_wrong_call_is_answered_with_the_fix_once(guess: str) -> None:
    call, fix = GUESSES[guess]
    assert explained_message(call).count(fix) == 1


async def test_a_forgotten_await_is_named() -> None:
    pending: Any = unmade(Client).get(Pod, "web")
    fixes = [lambda: pending.metadata, lambda: pending["metadata"], lambda: iter(pending), lambda: "a" in pending]
    assert all("write await before the call" in explained_message(fix) for fix in fixes)
    pending.close()


async def test_a_list_that_was_awaited_already_is_no_stream() -> None:
    async def read() -> None:
        found: Any = [POD]
        async for _ in found:
            pass

    with pytest.raises(TypeError) as raised:
        await read()
    explain_misuse(raised.value)
    assert "write for instead of async for, or leave out the await" in str(raised.value)


async def test_a_manager_runs_async_functions() -> None:
    def start() -> asyncio.Task[None]:
        return asyncio.create_task(NOTHING)

    with pytest.raises(TypeError) as raised:
        start()
    explain_misuse(raised.value)
    assert "write async def" in str(raised.value)


class Reader:
    """A class of the user's, by the name of one of ours."""

    def list(self, kind: str) -> None: ...


def decode(text: str) -> None:
    """A function of the user's, by the name of one of ours."""


def _class_of_ones_own() -> Any:
    class Client:
        def get(self, url: str) -> None: ...

    return Client()


class OwnError(TypeError):
    """Has arguments of its own."""


class Proxy:
    """Does not tell its class, as a proxy that is not bound to anything."""

    @property  # type: ignore[misc]  # it can be set, otherwise
    def __class__(self) -> Any:
        raise RuntimeError("not bound")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name, name=name, obj=self)


ANYTHING: dict[str, Any] = {
    "reader": Reader(),
    "int": int,
    "none": lambda: None,
    "one": 1,
    "decode": decode,
    "encode": base64.b64encode,
    "client": _class_of_ones_own(),
    "text": "a",
    "dict": {},
    "proxy": Proxy(),
}


@pytest.mark.parametrize(
    "call",
    [
        lambda: ANYTHING["reader"].lst,
        lambda: ANYTHING["reader"].lst(label_selector=1),
        lambda: ANYTHING["int"](label_selector=1),
        lambda: ANYTHING["none"](1),
        lambda: ANYTHING["one"].metadata,
        lambda: ANYTHING["one"]["metadata"],
        lambda: ANYTHING["decode"](),
        lambda: ANYTHING["decode"]("a", "b"),
        lambda: ANYTHING["encode"](),
        lambda: ANYTHING["client"].get(),
        lambda: ANYTHING["text"].name,
        lambda: ANYTHING["dict"].labels,
        lambda: ANYTHING["proxy"].size,
        lambda: _raise(OwnError("decode() missing 1 required positional argument: 'raw'")),
    ],
)
def test_errors_that_are_not_about_kubewright_are_left_alone(call: Callable[[], object]) -> None:
    with pytest.raises((TypeError, AttributeError)) as raised:
        call()
    before = str(raised.value)
    explain_misuse(raised.value)
    assert str(raised.value) == before


def test_every_word_that_is_suggested_is_a_keyword_somewhere() -> None:
    doors: list[Callable[..., object]] = [
        *(function for _, function in inspect.getmembers(CachedClient, inspect.isfunction)),
        *(function for _, function in inspect.getmembers(Client, inspect.isfunction)),
        controller_for,
        Builder.watches,
        Manager.__init__,
        kubewright.resource,
        ControlPlane.embedded,
    ]
    keywords = {name for door in doors for name in inspect.signature(door).parameters}
    assert set(_WORDS.values()) <= keywords


async def test_an_error_that_closes_a_client_is_explained() -> None:
    async def use() -> None:
        async with kw.Client(Config(server="http://127.0.0.1:1")) as client:
            await client.list(Pod, label_selector="app=web")

    with pytest.raises(TypeError, match=re.escape("'label_selector': write labels=")):
        await use()


def test_a_kind_without_a_status_is_written_with_none() -> None:
    with pytest.raises(TypeError, match=re.escape("write Resource[PodSpec, Status], or Resource[PodSpec, None]")):
        kw.Resource[PodSpec]


def test_a_generic_kind_takes_its_own_parameters() -> None:
    base = kw.Resource
    spec = typing.TypeVar("spec")

    class Base(base[spec, None], typing.Generic[spec]):  # type: ignore[misc, valid-type]
        pass

    assert typing.get_args(Base[PodSpec]) == (PodSpec,)


async def test_a_manager_runs_in_an_async_block() -> None:
    def enter() -> None:
        with manager.running():
            pass

    # From 3.14 on Python says it itself.
    assert re.search("write async with|Did you mean to use 'async with'", explained_message(enter))
