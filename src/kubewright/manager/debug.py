"""Debug endpoints, as JSON: the queues, the caches, recent reconciles and why they ran, the tasks.

They name objects, so their server should not be publicly reachable; it is off by default.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import msgspec

from kubewright.cache.informer import Informer
from kubewright.controller.controllers import Controller
from kubewright.controller.reconcile_handler import RecentReconcile
from kubewright.manager.serving import EndpointRequest, EndpointResponse, Server

Key = TypeVar("Key", bound=Hashable)


def add_debug_routes(
    server: Server,
    controllers: Callable[[], Sequence[Controller[Key]]],
    informers: Callable[[], Sequence[Informer]],
) -> None:
    """Serve /debug/queues, /debug/caches, /debug/reconciles and /debug/tasks."""

    async def queues(request: EndpointRequest) -> EndpointResponse:
        return _json({controller.name: controller.queue.snapshot() for controller in controllers()})

    async def caches(request: EndpointRequest) -> EndpointResponse:
        return _json([_cache(informer) for informer in informers()])

    async def reconciles(request: EndpointRequest) -> EndpointResponse:
        return _json(
            {
                controller.name: [_reconcile(key, finished) for key, finished in reversed(controller.recent.items())]
                for controller in controllers()
            }
        )

    async def tasks(request: EndpointRequest) -> EndpointResponse:
        return _json(sorted(_task(task) for task in asyncio.all_tasks()))

    server.route("/debug/queues", queues)
    server.route("/debug/caches", caches)
    server.route("/debug/reconciles", reconciles)
    server.route("/debug/tasks", tasks)


def _cache(informer: Informer) -> dict[str, object]:
    blocked = informer.blocked
    return {
        "kind": informer.kind_name,
        "scope": str(informer.scope),
        "state": informer.state,
        "blocked": str(blocked) if blocked is not None else "",
        "revision": informer.revision,
        "users": informer.references,
        **msgspec.structs.asdict(informer.statistics),
    }


def _reconcile(key: Hashable, finished: RecentReconcile) -> dict[str, object]:
    return {
        "key": str(key),
        "outcome": finished.outcome if isinstance(finished.outcome, str) else repr(finished.outcome),
        "seconds": round(finished.seconds, 6),
        "reasons": [str(reason) for reason in finished.reasons],
    }


def _task(task: asyncio.Task[object]) -> str:
    frames = task.get_stack(limit=1)
    position = f" at {frames[0].f_code.co_qualname}:{frames[0].f_lineno}" if frames else ""
    return f"{task.get_name()}{position}"


def _json(value: object) -> EndpointResponse:
    return EndpointResponse(200, "application/json", msgspec.json.format(msgspec.json.encode(value)) + b"\n")
