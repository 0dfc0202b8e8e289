from __future__ import annotations

from collections.abc import Callable

from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.wait import deleted, exists
from kubewright.controlplane.controllers.clock import SystemClock
from kubewright.controlplane.controllers.runtime import BuiltInController
from kubewright.controlplane.controllers.service_accounts import ServiceAccounts

Start = Callable[[BuiltInController], None]


async def test_every_active_namespace_gets_its_default_account(client: Client, namespace: str, start: Start) -> None:
    start(ServiceAccounts(client, SystemClock()))
    await client.wait_for(ServiceAccount, "default", exists, namespace=namespace)
    later = await client.create(Namespace(metadata=ObjectMeta(generate_name="later-")))
    await client.wait_for(ServiceAccount, "default", exists, namespace=later.metadata.name)


async def test_a_deleted_account_comes_again(client: Client, namespace: str, start: Start) -> None:
    start(ServiceAccounts(client, SystemClock()))
    first = await client.wait_for(ServiceAccount, "default", exists, namespace=namespace)
    assert first is not None
    await client.delete(first)
    await client.wait_for(first, deleted)
    await client.wait_for(ServiceAccount, "default", exists, namespace=namespace)


async def test_a_namespace_that_is_going_gets_none(
    client: Client, namespace: str, start: Start, writes: list[str]
) -> None:
    await client.delete(Namespace, namespace)
    later = await client.create(Namespace(metadata=ObjectMeta(generate_name="later-")))
    start(ServiceAccounts(client, SystemClock()))
    await client.wait_for(ServiceAccount, "default", exists, namespace=later.metadata.name)
    assert not any(f"/{namespace}/serviceaccounts" in write for write in writes)


async def test_existing_accounts_are_left_alone(
    client: Client, namespace: str, start: Start, writes: list[str]
) -> None:
    account = ServiceAccount(metadata=ObjectMeta(name="default", namespace=namespace, labels={"mine": "yes"}))
    mine = await client.create(account)
    start(ServiceAccounts(client, SystemClock()))
    later = await client.create(Namespace(metadata=ObjectMeta(generate_name="later-")))
    await client.wait_for(ServiceAccount, "default", exists, namespace=later.metadata.name)
    assert await client.get(ServiceAccount, mine.key) == mine
    assert sum(f"/{namespace}/serviceaccounts" in write for write in writes) == 1
