"""The operator of the benchmark: `operator.py hand|patterns OBJECTS`, server in KUBECONFIG. Prints CPU microseconds."""

from __future__ import annotations

import asyncio
import json
import sys
import time

import uvloop

from bench.patterns import account as wanted
from bench.patterns.account import CHILDREN, Account
from kubewright import CachedClient, Client, Condition, Manager, Recorder, Request, Result, controller_for, now
from kubewright.api import Object, set_controller_reference
from kubewright.controller import Channel
from kubewright.manager.program import tune_collector
from kubewright.patterns import Context, ObjectReconciler, Pipeline, step

FINALIZER = "bench.kubewright.dev/cleanup"
RECONCILES = 20  # of each settled object
WORKERS = 8


class ByHand:
    """Seven children, a condition for each, one for all, a finalizer, a phase."""

    def __init__(self, client: CachedClient) -> None:
        self._client = client

    async def reconcile(self, request: Request) -> Result | None:
        account = await self._client.find(Account, request)
        if account is None or account.metadata.deletion_timestamp is not None:
            return None
        if FINALIZER not in account.metadata.finalizers:
            account.metadata.finalizers.append(FINALIZER)
            await self._client.patch(account)
            return Result(requeue=True)
        children: list[tuple[str, Object]] = [
            ("ServiceAccountReady", wanted.service_account(account)),
            ("OwnerReady", wanted.role(account, "owner", ["*"])),
            ("EditorReady", wanted.role(account, "editor", ["get", "list", "watch", "create", "update", "delete"])),
            ("ViewerReady", wanted.role(account, "viewer", ["get", "list", "watch"])),
            ("BindingReady", wanted.binding(account)),
            ("SettingsReady", wanted.settings(account)),
            ("SecretReady", wanted.secret(account)),
        ]
        for condition, child in children:
            set_controller_reference(account, child)
            await self._client.apply(child, force=True)
            self._set(account, condition)
        self._set(account, "Ready")
        account.status.phase = "Active"
        account.status.observed_generation = account.metadata.generation
        await self._client.status.patch(account)
        return None

    def _set(self, account: Account, type_: str) -> None:
        condition = Condition(
            type=type_,
            status="True",
            reason="Done",
            observed_generation=account.metadata.generation,
            last_transition_time=now(),
        )
        for position, there in enumerate(account.status.conditions):
            if there.type == type_:
                if there.status == condition.status:
                    condition.last_transition_time = there.last_transition_time
                account.status.conditions[position] = condition
                return
        account.status.conditions.append(condition)


class AccountContext(Context[Account]):
    pass


@step("ServiceAccountReady")
async def service_account(context: AccountContext) -> None:
    await context.ensure(wanted.service_account(context.object))


@step("OwnerReady")
async def owner(context: AccountContext) -> None:
    await context.ensure(wanted.role(context.object, "owner", ["*"]))


@step("EditorReady")
async def editor(context: AccountContext) -> None:
    verbs = ["get", "list", "watch", "create", "update", "delete"]
    await context.ensure(wanted.role(context.object, "editor", verbs))


@step("ViewerReady")
async def viewer(context: AccountContext) -> None:
    await context.ensure(wanted.role(context.object, "viewer", ["get", "list", "watch"]))


@step("BindingReady", needs=[service_account, owner])
async def binding(context: AccountContext) -> None:
    await context.ensure(wanted.binding(context.object))


@step("SettingsReady")
async def settings(context: AccountContext) -> None:
    await context.ensure(wanted.settings(context.object))


@step("SecretReady")
async def secret(context: AccountContext) -> None:
    await context.ensure(wanted.secret(context.object))


PIPELINE = Pipeline[AccountContext](service_account, owner, editor, viewer, binding, settings, secret)


class OnPatterns(ObjectReconciler[Account]):
    """The same."""

    finalizer = FINALIZER

    def __init__(self, client: CachedClient, events: Recorder) -> None:
        super().__init__(client)
        self._events = events

    async def converge(self, account: Account) -> None:
        await PIPELINE.run(AccountContext(account, self.client, self._events))
        account.status.phase = "Active"


async def main(variant: str, objects: int) -> None:
    async with Client() as client:
        manager = Manager(client)
        again: Channel[Request] = Channel()
        reconciler = (
            ByHand(manager.client) if variant == "hand" else OnPatterns(manager.client, manager.recorder("bench"))
        )
        controller = (
            controller_for(manager, Account, workers=WORKERS).owns(*CHILDREN).source(again).complete(reconciler)
        )
        tune_collector(manager)
        async with manager.running():
            while not await _is_converged(manager.client, objects):
                await asyncio.sleep(0.05)
            # Reconciles that the children's own events cause belong to it.
            await asyncio.sleep(1)
            converged = time.process_time()
            keys = [account.key for account in await manager.client.list(Account)]
            async with controller.reconciles() as reconciles:
                before = time.process_time()
                for _ in range(RECONCILES):
                    for key in keys:
                        again.send(key)
                    for _ in keys:
                        await anext(reconciles)
                settled = time.process_time() - before
    figures = {
        "converging an object": converged * 1e6 / objects,
        "reconciling a settled one": settled * 1e6 / (objects * RECONCILES),
    }
    print(json.dumps(figures))


async def _is_converged(client: CachedClient, objects: int) -> bool:
    return sum(account.status.phase == "Active" for account in await client.list(Account)) == objects


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1], int(sys.argv[2])))
