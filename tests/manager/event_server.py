"""A scripted server of events, and a clock that a test advances."""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.events.v1 import Event
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.client.errors import ConnectionLost
from kubewright.client.http.response import Headers, Response, StreamedResponse

OBJECT = ConfigMap(metadata=ObjectMeta(name="settings", namespace="shop", uid="1", resource_version="5"))


def config_map(number: int, namespace: str = "shop") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=f"c{number}", namespace=namespace))


class ManualTime:
    """Time that passes only when it is advanced."""

    def __init__(self) -> None:
        self.present = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.present

    def advance(self, time: timedelta) -> None:
        self.present += time


class EventServer:
    """A `Transport` to a server that has nothing but events. `failures` come first: what a request fails with."""

    def __init__(self) -> None:
        self.events: dict[str, dict[str, JSONValue]] = {}
        self.requests: list[str] = []
        self.failures: deque[Exception | tuple[int, str, str]] = deque()
        self.loses_answers = False
        self.is_silent = False
        self.refused: dict[str, float] = {}
        """Namespaces in which nothing is accepted, and the seconds that each refusal takes."""
        self.attempts: list[tuple[str, str, float]] = []
        """Namespace and name of each event that was sent, and when."""
        self.meanwhile: Callable[[], None] = lambda: None

    async def request(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> Response:
        self.requests.append(method)
        self.meanwhile()
        if self.is_silent:
            await asyncio.Event().wait()
        if self.failures:
            failure = self.failures.popleft()
            if isinstance(failure, Exception):
                raise failure
            return _failure(*failure)
        namespace = target.split("/")[5]
        name = json.loads(body or b"{}").get("metadata", {}).get("name", "")
        self.attempts.append((namespace, name, asyncio.get_running_loop().time()))
        if namespace in self.refused:
            await asyncio.sleep(self.refused[namespace])
            return _failure(500, "InternalError", "failed calling webhook")
        response = self._answer(method, target.partition("?")[0], json.loads(body or b"{}"))
        if self.loses_answers:
            self.loses_answers = False
            raise ConnectionLost("the connection broke")
        return response

    def _answer(self, method: str, path: str, sent: dict[str, JSONValue]) -> Response:
        target = re.fullmatch(r"/apis/events\.k8s\.io/v1/namespaces/([^/]+)/events(?:/(.+))?", path)
        assert target is not None, path
        if method == "POST":
            metadata = sent["metadata"]
            assert isinstance(metadata, dict)
            assert metadata["namespace"] == target[1]
            name = str(metadata["name"])
            if name in self.events:
                return _failure(409, "AlreadyExists", name)
            self.events[name] = sent
        else:
            assert method == "PATCH"
            name = target[2]
            if name not in self.events:
                return _failure(404, "NotFound", name)
            self.events[name] |= sent
        return Response(200, Headers(), json.dumps(self.events[name]).encode())

    async def stream(
        self,
        method: str,
        target: str,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> StreamedResponse:
        raise AssertionError("a recorder watches nothing")

    async def aclose(self) -> None:
        pass

    def stored(self) -> list[Event]:
        return [from_json(Event, event) for event in self.events.values()]

    def counted_notes(self) -> list[tuple[str, int]]:
        """The notes of the events, and their counts."""
        return [(event.note or "", event.series.count if event.series else 1) for event in self.stored()]


def _failure(code: int, reason: str, name: str, cause: str = "") -> Response:
    causes = [{"reason": cause}] if cause else []
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": f"{reason}: {name}",
        "details": {"name": name, "causes": causes},
    }
    return Response(code, Headers(), json.dumps(status).encode())
