"""The operator of the benchmark: `operator.py MACHINES`, server in KUBECONFIG. Prints what it has cost, as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import uvloop
from operators.wukong import Wukong, WukongReconciler, setup

from kubewright import Client, Manager
from kubewright.manager.program import tune_collector
from kubewright.testing import count_requests, settled

RECONCILES = 10  # of each settled machine
QUIET = 10.0


async def main(machines: int) -> dict[str, float]:
    """Run until all machines do, and then for some time more."""
    async with Client() as client:
        manager = Manager(client, webhook_address="0", preflight=False)
        setup(manager)
        tune_collector(manager)
        async with manager.running():
            await manager.synced()
            before, cpu = _memory(), time.process_time()
            with count_requests(client) as converging:
                await _all_run(manager, machines)
                await settled(manager, quiet=2.0, timeout=600)
            cpu = time.process_time() - cpu
            with count_requests(client) as at_rest:
                await settled(manager, quiet=QUIET, timeout=60)
            return {
                "CPU until it runs": cpu / machines * 1e6,
                "peak memory": _memory() / 1024,
                "memory of one": (_memory() - before) / machines,
                "requests until it runs": len(converging.attempts) / machines,
                "a settled reconcile": await _reconcile_again(manager, machines),
                "requests in 10 s at rest": float(len(at_rest.attempts)),
            }


async def _all_run(manager: Manager, machines: int) -> None:
    while True:
        found = await manager.client.list(Wukong)
        if sum(wukong.status.phase == "Running" for wukong in found) == machines:
            return
        await asyncio.sleep(1)


async def _reconcile_again(manager: Manager, machines: int) -> float:
    (reconciler,) = [each.reconciler for each in manager.controllers if isinstance(each.reconciler, WukongReconciler)]
    keys = [wukong.key for wukong in await manager.client.list(Wukong)]
    began = time.process_time()
    for _ in range(RECONCILES):
        for key in keys:
            await reconciler.reconcile(key)
    return (time.process_time() - began) / machines / RECONCILES * 1e6


def _memory() -> float:
    """KiB at most so far. Not `ru_maxrss`: that begins with what the process had which started this one."""
    return float(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    print(json.dumps(uvloop.run(main(int(sys.argv[1])))))
