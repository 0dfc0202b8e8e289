"""Beginners' mistakes: each is an error where it is made, and its message says what to write instead.

Many are what works, or what is called so, in kopf or controller-runtime.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta

import pytest
from tests.controller.scripted import Reconciler, succeed

from kubewright.api.core.v1 import ConfigMap, Namespace, Pod, Secret, Service
from kubewright.api.model import Model
from kubewright.api.resources import Object, Resource
from kubewright.cache import Cache
from kubewright.cache.entry import parse_entry
from kubewright.client import Client, Config
from kubewright.controller.builder import Builder, controller_for
from kubewright.controller.controllers import Controller
from kubewright.controller.defaults import ControllerDefaults
from kubewright.controller.event import Event
from kubewright.controller.handler import Handler, WrongKeys, checked_requests, for_object, mapped
from kubewright.controller.predicates import generation_changed, predicate
from kubewright.controller.reconcile import Request, Result
from kubewright.controller.source import Channel, Function, Polled
from kubewright.controller.watched import Watched


class Host:
    """What a controller is built for."""

    def __init__(self) -> None:
        self.client = Client(Config(server="http://127.0.0.1:1"))
        self.cache = Cache(self.client)
        self.controller_defaults = ControllerDefaults()

    def expect(self, name: str) -> None:
        pass

    def add(self, controller: Controller[Request]) -> None:
        pass


class PodReconciler:
    async def reconcile(self, request: Request) -> Result:
        return Result()


class GoReconciler:
    async def reconcile(self, ctx: object, request: Request) -> Result:
        return Result()


class Misspelt:
    async def Reconcile(self, request: Request) -> Result:  # the mistake
        return Result()


class Yielding:
    async def reconcile(self, request: Request) -> AsyncIterator[Result]:
        yield Result()


class Unnamed(Resource[Model, None]):
    pass


async def reconcile(request: Request) -> None:
    """A reconciler that is a function."""


async def on_create(spec: object, name: str, **kwargs: object) -> None:
    """A handler as kopf calls it."""


def on_update(**kwargs: object) -> None:
    """As kopf calls it, too."""


async def is_ready(old: Pod | None, new: Pod | None) -> bool:
    return True


def builder() -> Builder[ConfigMap]:
    return controller_for(Host(), ConfigMap)


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "a class for a reconciler": (
        lambda: builder().complete(PodReconciler),  # type: ignore[arg-type]
        "PodReconciler is a class: give an instance of it, PodReconciler(…), as the reconciler",
    ),
    "a call of the function": (
        lambda: builder().complete(reconcile(Request("shop", "web"))),  # type: ignore[arg-type]
        "reconcile(…) is a call: give the function reconcile itself as the reconciler",
    ),
    "nothing for a reconciler": (
        lambda: builder().complete(None),  # type: ignore[arg-type]
        "None is not a reconciler: expected an object with `async def reconcile(self, request)`, or an async function",
    ),
    "the method spelt as in Go": (
        lambda: builder().complete(Misspelt()),  # type: ignore[arg-type]
        "is not a reconciler: expected an object with `async def reconcile(self, request)`",
    ),
    "a context as in Go": (
        lambda: builder().complete(GoReconciler()),  # type: ignore[arg-type]
        "a reconciler is a function of (request); GoReconciler.reconcile(ctx: 'object', request: 'Request')",
    ),
    "parameters as in kopf": (
        lambda: builder().complete(on_create),  # type: ignore[arg-type]
        "a reconciler is a function of (request); on_create(spec: 'object', name: 'str', **kwargs: 'object')",
    ),
    "keywords alone as in kopf": (
        lambda: builder().complete(on_update),  # type: ignore[arg-type]
        "a reconciler is a function of (request); on_update(**kwargs: 'object')",
    ),
    "a reconciler that yields": (
        lambda: builder().complete(Yielding()),  # type: ignore[arg-type]
        "Yielding.reconcile is a generator, and would do nothing: a reconciler has no yield in it",
    ),
    "no manager": (
        lambda: controller_for(ConfigMap, ConfigMap),  # type: ignore[arg-type]
        "is not a manager: give the Manager first, then the kind",
    ),
    "a client for a manager": (
        lambda: controller_for(Host().client, ConfigMap),  # type: ignore[arg-type]
        "is not a manager: give the Manager first, then the kind",
    ),
    "a name for a kind": (
        lambda: controller_for(Host(), "ConfigMap"),  # type: ignore[arg-type]
        'controller_for(manager, kind): a kind is given by its class, not by its name "ConfigMap": import it',
    ),
    "an object for a kind": (
        lambda: controller_for(Host(), ConfigMap()),  # type: ignore[arg-type]
        "expected a kind, not the ConfigMap : give its class ConfigMap",
    ),
    "a class that is no kind": (
        lambda: controller_for(Host(), Unnamed),
        'Unnamed is not a kind yet: decorate it with @resource("group/version")',
    ),
    "a class that is no resource": (
        lambda: controller_for(Host(), PodReconciler),  # type: ignore[type-var]
        'PodReconciler is not a kind: derive it from Resource and decorate it with @resource("group/version")',
    ),
    "owns an object": (
        lambda: builder().owns(ConfigMap()),  # type: ignore[arg-type]
        "expected a kind, not the ConfigMap : give its class ConfigMap",
    ),
    "owns a name": (
        lambda: builder().owns("Pod"),  # type: ignore[arg-type]
        'owns(kind): a kind is given by its class, not by its name "Pod": import it',
    ),
    "owns a list": (
        lambda: builder().owns([Pod, Service]),  # type: ignore[arg-type]
        "owns(kind): expected a kind, not a list: give them one by one",
    ),
    "owns nothing": (lambda: builder().owns(), "owns() without a kind: give at least one, as in owns(Pod)"),
    "owns what has no namespace": (
        lambda: builder().owns(Namespace),
        "owns(Namespace): ConfigMap is namespaced and cannot own it: it has no namespace.",
    ),
    "a lambda for a predicate": (
        lambda: builder().owns(Pod, where=lambda pod: True),  # type: ignore[arg-type]
        "is not a predicate: mark a function of the object before and the object after with @predicate",
    ),
    "a list of predicates": (
        lambda: builder().owns(Pod, where=[generation_changed]),  # type: ignore[arg-type]
        "[Predicate(generation changed)] is not a predicate",
    ),
    "a predicate of one object": (
        lambda: predicate(lambda pod: True),  # type: ignore[arg-type, misc]
        "a predicate is a function of (old, new)",
    ),
    "an async predicate": (
        lambda: predicate(is_ready),  # type: ignore[arg-type]
        "a predicate is a function of (old, new) that returns at once; is_ready is async",
    ),
    "a lambda for a handler": (
        lambda: builder().watches(Secret, lambda secret: []),  # type: ignore[arg-type]
        "is not a handler of Secret: mark a function of the object with @mapped",
    ),
    "a map function of the event and the queue": (
        lambda: mapped(lambda event, queue: []),  # type: ignore[arg-type]
        "a map function is a function of (object)",
    ),
    "a kind for a source": (
        lambda: builder().source(Pod),  # type: ignore[arg-type]
        "expected a source such as Channel() or Polled(…); for a kind use owns or watches",
    ),
    "no workers": (lambda: builder().workers(0).complete(reconcile), "workers=0, expected at least 1"),
    "workers as a string": (
        lambda: controller_for(Host(), ConfigMap, workers="4").complete(reconcile),  # type: ignore[arg-type]
        "controller \"configmap\": workers='4': expected a number",
    ),
    "workers as an attribute": (
        lambda: setattr(builder(), "workers", 4),
        "'Builder' object attribute 'workers' is read-only",
    ),
    "a timeout as in Go": (
        lambda: controller_for(Host(), ConfigMap, timeout="30s").complete(reconcile),  # type: ignore[arg-type]
        "timeout='30s': expected a number",
    ),
    "a timeout of no time": (
        lambda: controller_for(Host(), ConfigMap, timeout=0).complete(reconcile),
        "timeout=0, expected a number of seconds above 0",
    ),
    "debounce as a timedelta": (
        lambda: controller_for(Host(), ConfigMap, debounce=timedelta(1)).complete(reconcile),  # type: ignore[arg-type]
        "debounce=datetime.timedelta(days=1): expected a number",
    ),
    "an error hook of the error alone": (
        lambda: controller_for(Host(), ConfigMap, on_error=lambda error: None).complete(reconcile),  # type: ignore[arg-type]
        "on_error is a function of (request, error, attempt)",
    ),
    "a name with spaces": (
        lambda: controller_for(Host(), ConfigMap, name="My Controller"),
        '"My Controller" is not a name for a controller: expected lower-case letters, digits and -',
    ),
    "polling as a timedelta": (
        lambda: Polled(dict, every=timedelta(1)),  # type: ignore[arg-type]
        "every=datetime.timedelta(days=1): expected a number",
    ),
    "a fetch with parameters": (
        lambda: Polled(lambda client: {}, every=1),  # type: ignore[arg-type, misc]
        "the fetch of a Polled source is a function of ()",
    ),
    "a feed without add": (
        lambda: Function(lambda: None),  # type: ignore[arg-type, misc]
        "the feed of a Function source is a function of (add)",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
async def test_a_mistake_is_an_error_that_names_the_fix(mistake: str) -> None:
    make, message = MISTAKES[mistake]
    with pytest.raises((TypeError, ValueError, AttributeError), match=re.escape(message)):
        make()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (["web"], 'found returned \'web\' instead of a key: expected keys such as Request("namespace", "name"), or'),
        ("web", "found returned 'web': expected a list of keys, such as Request("),
        (Request("shop", "web"), "expected a list of keys, such as Request("),
        ([("shop", "web")], "found returned ('shop', 'web') instead of a key"),
        (
            [ConfigMap()],
            'instead of a key: expected keys such as Request("namespace", "name"), or the .key of an object',
        ),
        (None, "found returned None: expected a list of keys"),
    ],
    ids=["names", "one name", "one key", "tuples", "objects", "nothing"],
)
@pytest.mark.parametrize("made", [mapped, lambda function: checked_requests(Handler(function))], ids=["map", "handler"])
def test_a_function_that_returns_no_keys_is_named(
    made: Callable[[Callable[..., object]], Handler[Request]], returned: object, message: str
) -> None:
    def found(given: object) -> object:
        return returned

    async def found_later(given: object) -> object:
        return returned

    event = added()
    with pytest.raises(TypeError, match=re.escape(message)):
        list(made(found)(event))
    later = made(found_later).later_keys
    assert later is not None
    pending = later(event)
    with pytest.raises(TypeError, match=re.escape(message.replace("found", "found_later", 1))):
        pending.__await__().send(None)


def test_a_map_function_that_returns_a_coroutine_is_named() -> None:
    async def helper() -> list[Request]:
        return []

    event = added()
    with pytest.raises(TypeError, match="returned a coroutine: make it an async function, and await it there"):
        list(mapped(lambda settings: helper())(event))  # its type is that of neither sort


async def test_what_a_builder_watches_is_checked_and_keeps_the_name_of_its_function() -> None:
    @Handler
    def every_widget(event: Event[Object]) -> list[Request]:
        return ["web"]  # type: ignore[list-item]  # the mistake

    checked = checked_requests(every_widget)
    assert repr(checked) == repr(every_widget) == "Handler(every_widget)"
    assert checked_requests(checked) is checked
    assert checked_requests(for_object) is for_object
    watched = builder().watches(ConfigMap, every_widget).complete(reconcile).sources[-1]
    assert isinstance(watched, Watched)
    with pytest.raises(WrongKeys, match="every_widget returned 'web' instead of a key"):
        watched._handler(added())


def test_a_function_that_is_async_and_yields_is_refused() -> None:
    async def found(given: object) -> AsyncIterator[Request]:
        yield Request("shop", "web")

    for make in (mapped, Handler):
        with pytest.raises(TypeError, match="found is async and yields: return a list of keys instead"):
            make(found)  # type: ignore[arg-type]


def added() -> Event[Object]:
    body = b'{"metadata":{"name":"a","namespace":"shop","resourceVersion":"1"}}'
    return Event(ConfigMap, None, parse_entry(body), False, None)


async def test_several_kinds_are_owned_at_once() -> None:
    built = builder().owns(Pod, Service, Secret, where=generation_changed).complete(reconcile)
    assert [repr(source) for source in built.sources] == [
        "Watched(ConfigMap)",
        "Watched(Pod)",
        "Watched(Service)",
        "Watched(Secret)",
    ]


async def test_functions_and_callable_objects_are_reconcilers() -> None:
    class Instance:
        async def __call__(self, request: Request) -> None:
            """An instance is a function."""

    for given in (reconcile, PodReconciler(), PodReconciler().reconcile, Instance(), lambda request: None):
        builder().complete(given)
    Controller("test", Reconciler(succeed))


def test_a_handler_may_be_a_generator() -> None:
    @Handler
    def everything(event: Event[Object]) -> Iterator[Request]:
        yield event.key

    assert isinstance(builder().watches(Secret, everything).source(Channel()), Builder)
