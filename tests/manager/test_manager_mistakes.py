"""Beginners' mistakes with a manager: each gets a sentence that names the fix."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kubewright.api.core.v1 import ConfigMap, Secret
from kubewright.client import Client, Config
from kubewright.controller import Request, controller_for
from kubewright.manager import Manager, Permission
from kubewright.manager.serving import AddressError


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client(Config(server="http://unused.test")) as client:
        yield client


UNTYPED: Any = Manager  # as a program without type checks uses it


class Reconciler:
    async def reconcile(self, request: Request) -> None: ...


class Work:
    async def run(self) -> None: ...


async def work() -> None: ...


@pytest.mark.parametrize("given", [None, "prod", Client, Config(server="http://unused.test")])
async def test_a_manager_needs_a_client(given: object) -> None:
    with pytest.raises(
        TypeError, match=r"expected a client: async with Client\(\) as client: manager = Manager\(client"
    ):
        Manager(given)  # type: ignore[arg-type]  # the mistake


async def test_the_client_of_a_manager_is_not_one_that_reads_from_a_cache(client: Client) -> None:
    with pytest.raises(TypeError, match="this client reads from a cache; give the one that it was made of"):
        Manager(Manager(client).client)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda client: UNTYPED(client, namespaces="shop"), 'expected a list of names, ["shop"]'),
        (lambda client: UNTYPED(client, namespaces=["shop,bank"]), 'namespaces="shop,bank" cannot be the name of a'),
        (lambda client: UNTYPED(client, namespaces=[""]), 'namespaces="" cannot be the name of a namespace: leave it'),
        (lambda client: UNTYPED(client, namespaces=[None]), "namespaces= expects the name of one namespace, not None"),
        (lambda client: UNTYPED(client, namespaces=True), "Manager(namespaces=True): expected a list of names"),
        (lambda client: UNTYPED(client, election="lease"), 'expected LeaderElection(client, "name-of-the-lease")'),
        (lambda client: UNTYPED(client, election=True), 'expected LeaderElection(client, "name-of-the-lease")'),
        (lambda client: UNTYPED(client, permissions=Permission(Secret, "get")), "expected a list such as [Permission("),
        (lambda client: UNTYPED(client, permissions=["secrets"]), "expected a list such as [Permission("),
        (lambda client: UNTYPED(client, permissions="secrets"), "expected a list such as [Permission("),
        (lambda client: UNTYPED(client, health_address=8081), 'expected ":8080" for all interfaces'),
        (lambda client: UNTYPED(client, metrics_address="8080"), 'expected ":8080" for all interfaces'),
        (lambda client: UNTYPED(client, controllers={"workers": 3}), "expected ControllerDefaults(workers=4)"),
        (lambda client: UNTYPED(client, grace=-1), "Manager(grace=-1): expected a number of seconds, or None"),
        (lambda client: UNTYPED(client).add(work()), "give the function itself, manager.add(work)"),
        (lambda client: UNTYPED(client).add(Work), "manager.add(Work): give an instance, Work("),
        (lambda client: UNTYPED(client).add(Reconciler()), "controller_for(manager, Kind).complete(reconciler)"),
        (lambda client: UNTYPED(client).add(None), "cannot run None: expected a controller, an object with run"),
        (lambda client: UNTYPED(client).add(5), "cannot run 5: expected a controller, an object with run"),
    ],
)
@pytest.mark.filterwarnings("error")  # a coroutine that is never awaited
async def test_an_argument_of_the_wrong_kind_is_refused_with_the_fix(
    client: Client, make: Callable[[Client], object], message: str
) -> None:
    with pytest.raises((TypeError, ValueError, AddressError)) as raised:
        make(client)
    assert message in str(raised.value)


async def test_a_builder_that_is_added_needs_to_be_completed(client: Client) -> None:
    manager = Manager(client)
    with pytest.raises(TypeError, match=r"end it with \.complete\(reconciler\), which also adds it"):
        manager.add(controller_for(manager, ConfigMap))  # type: ignore[arg-type]  # the mistake


async def test_a_manager_without_anything_to_run_says_so(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    manager = Manager(client)
    manager.stop()
    with caplog.at_level(logging.WARNING):
        await manager.run()
    assert caplog.messages == ["manager: nothing to run: no controller was added"]
