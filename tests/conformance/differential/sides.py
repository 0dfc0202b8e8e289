"""One of two servers, and its answers in a form that can be compared with the other's.

Times are left out of the comparison; uids, revisions and cluster IPs are numbered in the order they appear, so that a
write that stores nothing on one server and something on the other is a difference.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from urllib.parse import urlencode

import msgspec

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.client.http.transport import HTTPTransport
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text

# Stand in a body for what only the server knows: the revision an object has, and the first one it had.
CURRENT, STALE = "<current>", "<stale>"
# Stand in a body for what makes the names of a sequence its own, and for the name up to its first dot.
LABEL, OWN = "<label>", "<own>"
CUSTOM_GROUP = "differential.example.com"
TIMES = ("time", "creationTimestamp", "deletionTimestamp", "lastTransitionTime")
CONTROLLERS = ("kube-controller-manager", "kubewright")
FIXED_TIME = "2026-01-01T00:00:00Z"
SECONDS = 60


@dataclass(frozen=True)
class Step:
    """One request about the object `name` of a sequence. Its `body` may hold `CURRENT`, `STALE`, `LABEL` and `OWN`."""

    method: str
    name: str
    body: JSONValue = None
    content_type: str = "application/json"
    query: tuple[tuple[str, str], ...] = ()
    subresource: str = ""


def uncollected(document: JSONObject) -> bool:
    """Whether the garbage collector will take a finalizer away."""
    return bool({"orphan", "foregroundDeletion"}.intersection(map(str, items(document, "metadata", "finalizers"))))


@dataclass(frozen=True)
class Both:
    """A connection to each server, ours first, and a namespace that both have."""

    transports: tuple[HTTPTransport, HTTPTransport]
    namespace: str

    def sides(self, path: str, label: str, unfinished: Callable[[JSONObject], bool] = uncollected) -> tuple[Side, Side]:
        """Both servers, about the objects whose names begin with `label`."""
        collection = path.format(namespace=self.namespace)
        ours, theirs = self.transports
        return Side(ours, collection, label, unfinished), Side(theirs, collection, label, unfinished)

    def prefix(self, path: str) -> str:
        """What makes names unique in the cluster, where the namespace does not."""
        return "" if "{namespace}" in path else f"{self.namespace[-8:]}-"

    async def remove(self, path: str, label: str) -> None:
        """Delete from the real server what would outlive the test: objects of the cluster."""
        transport = self.transports[1]
        listed = msgspec.json.decode((await transport.request("GET", path, timeout=SECONDS)).body, type=JSONObject)
        json_body, merge_patch = ([("Content-Type", f"application/{kind}json")] for kind in ("", "merge-patch+"))
        for name in (text(item, "metadata", "name") for item in items(listed, "items")):
            if not name.startswith(label):
                continue
            one = f"{path}/{name}"
            await transport.request("DELETE", one, timeout=SECONDS)
            await transport.request("PATCH", one, merge_patch, b'{"metadata":{"finalizers":null}}', timeout=SECONDS)
            if path == "/api/v1/namespaces":
                body = json.dumps({"metadata": {"name": name}, "spec": {"finalizers": []}}).encode()
                await transport.request("PUT", f"{one}/finalize", json_body, body, timeout=SECONDS)

    async def difference(
        self,
        path: str,
        sequence: Sequence[Step],
        label: str,
        unfinished: Callable[[JSONObject], bool] = uncollected,
    ) -> str:
        """The first step that is answered differently, with what came before it. Later ones follow from it."""
        ours, theirs = self.sides(path, label, unfinished)
        for number, step in enumerate(sequence):
            refusal, expected = await asyncio.gather(ours.send(step), theirs.send(step))
            if refusal != expected:
                history = "\n".join(map(str, sequence[: number + 1]))
                delta = "\n".join(
                    unified_diff(expected.splitlines(), refusal.splitlines(), "real", "embedded", n=2, lineterm="")
                )
                return f"{history}\n{delta}\n"
        return ""


@dataclass
class Side:
    """One of the two servers, and what a sequence has seen of it."""

    transport: HTTPTransport
    collection: str
    label: str
    unfinished: Callable[[JSONObject], bool]
    """Whether a controller will change the object."""
    numbers: dict[str, str] = field(default_factory=dict)
    revisions: dict[str, list[str]] = field(default_factory=dict)

    async def send(self, step: Step) -> str:
        """The answer in a form that can be compared, once no controller will change the object any more."""
        name = f"{self.label}-{step.name}"
        path = (
            self.collection if step.method == "POST" else "/".join(filter(None, (self._path(name), step.subresource)))
        )
        seen = self.revisions.get(name, ["1"])
        body = None
        if step.body is not None:
            body = json.dumps(step.body).replace(CURRENT, seen[-1]).replace(STALE, seen[0])
            body = body.replace(LABEL, self.label).replace(OWN, name.partition(".")[0])
        target = f"{path}?{urlencode(step.query)}"
        headers = [("Content-Type", step.content_type), ("Accept", "application/json"), ("User-Agent", "tester/1")]
        answer = await self.transport.request(
            step.method, target, headers, body.encode() if body else None, timeout=SECONDS
        )
        document = msgspec.json.decode(answer.body, type=JSONObject)
        self._remember(name, document, step)
        refusal = f"{answer.status} {self.comparable(document)}"
        if step.method != "GET":
            await self._settled(name)
        return refusal

    def comparable(self, document: JSONObject) -> str:
        """The document as text, without what is never the same twice."""
        written = json.dumps(_without_times(document), sort_keys=True, indent=1)
        written = re.sub(
            r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", lambda uid: self._number("uid", uid[0]), written
        )
        written = re.sub(r"\bkube-api-access-\w{5}\b", lambda name: self._number("volume", name[0]), written)
        written = re.sub(
            r'(odePort": |Duplicate value: )(3\d{4})\b', lambda port: port[1] + self._number("port", port[2]), written
        )
        written = re.sub(r"\b10\.\d+\.\d+\.\d+\b", lambda address: self._number("ip", address[0]), written)
        return re.sub(
            r'(resourceVersion": "|ResourceVersion in [a-z ]+(?: \(|: ))(\d+)',
            lambda revision: revision[1] + self._number("revision", revision[2]),
            written,
        )

    def _path(self, name: str) -> str:
        return f"{self.collection}/{name}"

    def _number(self, what: str, value: str) -> str:
        return self.numbers.setdefault(f"{what} {value}", f"{what} {len(self.numbers)}")

    def _remember(self, name: str, document: JSONObject, step: Step) -> None:
        revision = text(document, "metadata", "resourceVersion")
        if revision and ("dryRun", "All") not in step.query:
            self.revisions.setdefault(name, []).append(revision)

    async def _settled(self, name: str) -> None:
        """Wait for the controllers, which are as quick as they are."""
        async with asyncio.timeout(SECONDS):
            while True:
                answer = await self.transport.request("GET", self._path(name), timeout=SECONDS)
                document = msgspec.json.decode(answer.body, type=JSONObject)
                if not self.unfinished(document):
                    self._remember(name, document, Step("GET", name))
                    return
                await asyncio.sleep(0.01)


def _without_times(document: JSONValue) -> JSONValue:
    """Managers in an order of their own: the server's is by time."""
    if isinstance(document, list):
        return [_without_times(item) for item in document]
    if isinstance(document, str):
        # Complaints about a patch quote what it made, in the order of Go's structs; those about templates of pods that
        # may not change, and about what changed in a pod, show the structs of the server's inside.
        document = re.sub(r'"\{.*\}": ', "<document>: ", document, flags=re.DOTALL)
        document = re.sub(r"value: \{.*\}: field is immutable", "<document>: field is immutable", document)
        return re.sub(r"(pod updates may not change fields other than [^\n]*)\n.*", r"\1", document, flags=re.DOTALL)
    if not isinstance(document, dict):
        return document
    kept: JSONObject = {
        name: "<time>" if name in TIMES and value not in (None, FIXED_TIME) else _without_times(value)
        for name, value in document.items()
    }
    causes = items(kept, "details", "causes")
    if causes:
        kept |= _with_causes_in_order(kept)
    if message := text(kept, "message"):
        kept["message"] = _in_order(message)
    if text(kept, "manager") in CONTROLLERS:
        kept["manager"] = CONTROLLERS[0]
    managers = kept.get("managedFields")
    if isinstance(managers, list):
        kept["managedFields"] = sorted(managers, key=lambda entry: json.dumps(entry, sort_keys=True))
    return kept


def _with_causes_in_order(status: JSONObject) -> JSONObject:
    """The real server walks the maps of a custom kind's schema, and managers, in no order. The message follows."""
    causes = [mapping(cause) for cause in items(status, "details", "causes")]
    if text(status, "details", "group") != CUSTOM_GROUP and text(status, "reason") != "Conflict":
        return {}
    refusal = list(dict.fromkeys(f"{text(cause, 'field')}: {text(cause, 'message')}" for cause in causes))
    written, ordered = (", ".join(causes) for causes in (refusal, sorted(refusal)))
    return {
        "details": {**mapping(status, "details"), "causes": sorted(causes, key=lambda cause: json.dumps(cause))},
        "message": text(status, "message").replace(written, ordered),
    }


def _in_order(message: str) -> str:
    """What is wrong with an applied object comes in no order, and ends with the first unknown field."""
    if unknown := re.search(r"\.\S+: field not declared in schema", message):
        return f"{message.partition('): ')[0]}): {unknown[0]}"
    first, *others = message.split("\n")
    return "\n".join([first, *sorted(others)])
