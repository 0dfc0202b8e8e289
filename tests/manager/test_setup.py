"""The setup function of an operator: how it may be written, and what is said when it is not."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager

import pytest

from kubewright.client import Client, Config
from kubewright.manager import Manager
from kubewright.manager.manager import SetupError
from kubewright.manager.setup import SetupResult, check_setup, set_up


@pytest.fixture
async def manager() -> AsyncIterator[Manager]:
    async with Client(Config(server="http://unused.test")) as client:
        yield Manager(client)


async def work() -> None:
    pass


def plain(manager: Manager) -> None:
    manager.add(work)


async def asynchronous(manager: Manager) -> None:
    manager.add(work)


@asynccontextmanager
async def context(manager: Manager) -> AsyncIterator[None]:
    manager.add(work)
    yield


class Operator:
    def __call__(self, manager: Manager) -> None:
        manager.add(work)

    async def method(self, manager: Manager) -> None:
        manager.add(work)


@pytest.mark.parametrize(
    "setup",
    [plain, asynchronous, context, Operator(), Operator().method, lambda manager: manager.add(work)],
    ids=["def", "async def", "async context", "object", "method", "lambda"],
)
async def test_a_setup_function_may_be_written_in_any_of_these_ways(
    manager: Manager, setup: Callable[[Manager], SetupResult]
) -> None:
    check_setup(setup, has_options=False)
    await set_up(setup, manager)
    assert manager.has_work
    await manager.aclose()


async def test_options_are_its_second_argument(manager: Manager) -> None:
    def setup(manager: Manager, options: str) -> None:
        given.append(options)
        manager.add(work)

    given: list[str] = []
    check_setup(setup, has_options=True)
    await set_up(setup, manager, "the options")
    assert given == ["the options"]


def too_many(manager: Manager, one: object, two: object) -> None: ...


def nothing() -> None: ...


def both(manager: Manager, options: object) -> None: ...


async def yields(manager: Manager) -> AsyncIterator[None]:
    yield


def yields_too(manager: Manager) -> Iterator[None]:
    yield


@pytest.mark.filterwarnings("error")  # a coroutine that is never awaited
@pytest.mark.parametrize(
    ("given", "has_options", "message"),
    [
        (lambda: None, False, "run() was given what setup returned, None: write run(setup, …), without calling it"),
        (work, False, "run() was given what setup returned, <coroutine object work at"),
        (lambda: 5, False, "run(5): expected a function that is called as setup(manager) and adds controllers"),
        (lambda: Operator, False, "expected a function that is called as setup(manager) and adds controllers"),
        (lambda: nothing, False, "nothing() -> 'None' cannot be called as setup(manager)"),
        (lambda: nothing, True, "nothing() -> 'None' cannot be called as setup(manager, options)"),
        (lambda: both, False, "; for options of your own give run(…, options=Options), with a Model named Options"),
        (lambda: plain, True, "; its second argument is the options that run(…, options=…) has read"),
        (lambda: too_many, True, "cannot be called as setup(manager, options)"),
        (lambda: yields, False, "yields yields: decorate it with @contextlib.asynccontextmanager"),
        (lambda: yields_too, False, "yields_too yields: decorate it with @contextlib.asynccontextmanager"),
        (lambda: functools.partial(too_many), False, "cannot be called as setup(manager)"),
    ],
)
def test_an_invalid_setup_function_is_refused_with_the_fix(
    given: Callable[[], object], has_options: bool, message: str
) -> None:
    with pytest.raises(TypeError) as raised:
        check_setup(given(), has_options=has_options)  # type: ignore[arg-type]  # the mistakes
    assert message in str(raised.value)


async def test_a_manager_is_not_a_setup_function(manager: Manager) -> None:
    with pytest.raises(TypeError, match=r"with a manager of your own: await manager\.run\(\)$"):
        check_setup(manager, has_options=False)  # type: ignore[arg-type]  # the mistake


async def test_a_setup_function_that_adds_nothing_is_an_error(manager: Manager) -> None:
    def setup(manager: Manager) -> None: ...

    with pytest.raises(SetupError, match=r"^there is nothing to run: setup has added no controller; add one with"):
        await set_up(setup, manager)


async def test_contexts_entered_before_a_setup_function_failed_are_left(manager: Manager) -> None:
    left: list[str] = []

    async def setup(manager: Manager) -> None:
        await manager.enter(resource("pool", left))
        raise LookupError("no such database")

    with pytest.raises(LookupError):
        await set_up(setup, manager)
    await manager.aclose()
    assert left == ["pool"]


@asynccontextmanager
async def resource(name: str, left: list[str]) -> AsyncIterator[str]:
    try:
        yield name
    finally:
        left.append(name)


@contextmanager
def sync_resource(name: str, left: list[str]) -> Iterator[str]:
    try:
        yield name
    finally:
        left.append(name)


class Session:
    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *error: object) -> None: ...


@pytest.mark.parametrize("given", [5, None, Session])
async def test_an_object_that_is_no_context_is_refused_with_an_example(manager: Manager, given: object) -> None:
    with pytest.raises(TypeError, match=r"expected a context manager, such as manager\.enter\(ClientSession\(\)\)$"):
        await manager.enter(given)  # type: ignore[arg-type]  # the mistake


async def test_contexts_are_left_in_reverse_order_and_enter_returns_their_value(manager: Manager) -> None:
    left: list[str] = []
    session: AbstractAsyncContextManager[str] = resource("session", left)
    assert await manager.enter(session) == "session"
    assert await manager.enter(sync_resource("database", left)) == "database"
    await manager.aclose()
    assert left == ["database", "session"]


@pytest.mark.parametrize("way", ["run", "running"])
async def test_setup_does_not_run_the_manager(manager: Manager, way: str) -> None:
    async def setup(manager: Manager) -> None:
        manager.add(work)
        if way == "run":
            await manager.run()
        async with manager.running():
            pass

    with pytest.raises(SetupError, match=r"leave out manager\.run\(\) in setup"):
        await set_up(setup, manager)
    await manager.aclose()
