"""Makes the networks, the disks and the machine of a Wukong, in this order, and reports what there is.

Nothing is made for a spec that is not valid. What is waited for is watched; the requeues are for what a watch may miss.
"""

from __future__ import annotations

import logging

from kubewright import CachedClient, Recorder, Request, Result
from kubewright.client.errors import APIError, RequestTimeout
from kubewright.controller.cancelled import Cancelled, outcome
from kubewright.patterns import NotYet, ObjectReconciler, Pipeline
from kubewright.patterns.conditions import is_lost_race

from .children import children_of, find_child, machine_name, taken_over
from .context import NodeNetworks, WukongContext
from .deletion import delete_children
from .disks import volumes
from .failures import Failure, InvalidSpec
from .kubevirt import VirtualMachine
from .machine import ensure_machine
from .networks import networks, prune_networks
from .restores import restore
from .ssh_keys import SSHKeys
from .status import find_instance, report
from .types import Wukong
from .validation import check

WAITING, AFTER_FAILURE, INVALID = 10.0, 30.0, 60.0
"""Seconds until the next reconcile of a Wukong that waits, that has failed, or that is not valid."""

pipeline = Pipeline[WukongContext](networks, volumes, ready=None)

_log = logging.getLogger(__name__)


class WukongReconciler(ObjectReconciler[Wukong]):
    """Reconciles Wukongs."""

    finalizer = "wukong.novasphere.dev/finalizer"

    def __init__(self, client: CachedClient, events: Recorder, nodes: NodeNetworks, *, nodes_first: bool) -> None:
        """With `nodes_first` nodes are configured before the attachments of networks are made, else afterwards."""
        super().__init__(client)
        self.events = events
        self.nodes = nodes
        self.nodes_first = nodes_first
        self.keys = SSHKeys(client)

    async def reconcile(self, request: Request) -> Result | None:
        """Reconcile one Wukong. One that is interrupted stays as it is, and comes again."""
        try:
            return await outcome(super().reconcile(request))
        except (Cancelled, RequestTimeout) as interruption:
            _log.info("interrupted: %s", interruption)
            return Result(requeue_after=WAITING)

    async def converge(self, wukong: Wukong) -> Result | None:
        """Make everything, and report it."""
        causes = check(wukong)
        if causes:
            return await self._refuse(wukong, "; ".join(map(str, causes)))
        if wukong.status.observed_generation == 0:
            wukong.status.phase = "Pending"
            return Result(requeue=True)
        context = self._context(wukong)
        problem: Exception | None = None
        try:
            await self._make(context)
        except (NotYet, Failure) as error:
            problem = error
        except APIError as error:
            if is_lost_race(error):
                raise
            problem = error
        await report(context, context.machine, problem)
        if problem is not None and not isinstance(problem, Failure):
            raise problem
        return self._next(context, problem)

    async def cleanup(self, wukong: Wukong) -> None:
        """Delete everything, and report what that waits for, or what it fails by."""
        context = self._context(wukong)
        try:
            await delete_children(context)
        except (NotYet, Failure, APIError) as problem:
            if is_lost_race(problem):
                raise
            await report(context, await self._machine(wukong), problem)
            if isinstance(problem, Failure):
                raise NotYet(str(problem), after=AFTER_FAILURE) from problem
            raise

    async def _make(self, context: WukongContext) -> None:
        wukong = context.object
        machine = await find_child(self.client, VirtualMachine, machine_name(wukong), wukong)
        if machine is not None:
            # Before its volumes: a Wukong that is deleted while it waits for something has both of them, or none.
            context.machine = await taken_over(self.client, machine, wukong)
        await pipeline.run(context)
        context.machine = await ensure_machine(context)
        instance = await find_instance(context, context.machine)
        await restore(context, context.machine, instance)
        if await prune_networks(context, instance):
            await self.nodes.release(wukong)  # or else the guest would lose a network that it runs with

    def _next(self, context: WukongContext, problem: Exception | None) -> Result | None:
        phase = context.object.status.phase
        if problem is not None or phase == "Error" or context.is_to_retry:
            return Result(requeue_after=AFTER_FAILURE)
        return Result(requeue_after=WAITING) if phase == "Creating" else None

    async def _refuse(self, wukong: Wukong, message: str) -> Result:
        """Change nothing. A machine that was made for an earlier spec goes on, and is reported."""
        await report(self._context(wukong), await self._machine(wukong), InvalidSpec(message))
        return Result(requeue_after=INVALID)

    async def _machine(self, wukong: Wukong) -> VirtualMachine | None:
        return next(iter(await children_of(self.client, VirtualMachine, wukong)), None)

    def _context(self, wukong: Wukong) -> WukongContext:
        context = WukongContext(wukong, self.client, self.events)
        context.nodes, context.nodes_first, context.keys = self.nodes, self.nodes_first, self.keys
        context.machine, context.attachments, context.volumes, context.is_to_retry = None, [], [], False
        return context
