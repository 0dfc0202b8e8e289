"""What went wrong between kube-controller-manager and the server: the lines of its log, and the server's refusals.

Each is counted by kind. Those that also happen beside the real server, for a known reason, are explained.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from kubewright.controlplane.embedded.server.audit import AuditEvent

_AGENT = "kube-controller-manager/"
_LINE = re.compile(r"^(?P<severity>[WEF])\d{4} \S+ +\d+ (?P<file>[^:\]]+):\d+\] (?P<text>.*)$")
_NAMES = re.compile(r'"[^"]*"|\S*\d\S*')

_GONE = "it was gone by then, which the caches of its informers had not seen"
_FASTER = "another writer was faster; it tries again"
_NO_METRICS = "there is no metrics server, as without one on a real cluster"
_KIND_GONE = "a custom kind that is gone: informers of it end with the next discovery, within half a minute"

# Seen beside kube-apiserver, too, with the same workloads.
_EXPLAINED_LINES = (
    (r"is not as new as written version", "it waits until its informers have what it wrote itself"),
    (r"the object has been modified", _FASTER),
    (r"StorageError: invalid object|uid mismatch|Precondition failed", _FASTER),
    (r"\bnot found\b", _GONE),
    (r"Failed to watch.*could not find the requested resource.*PartialObjectMetadata", _KIND_GONE),
    (r"horizontal\.go.*resource metrics API", _NO_METRICS),
    (r"The manifest file is empty", "written at each start without a file of that kind"),
    (r"because it is being terminated", "its namespace is being deleted"),
)

_EXPLAINED_REFUSALS = (
    (r"404 (get|update|patch|delete) \S+/\S+", _GONE),
    (r"404 (list|watch|deletecollection) /apis/[^/]+\.example\.com/\S+", _KIND_GONE),
    (r"404 list /apis/metrics\.k8s\.io/\S+", _NO_METRICS),
    (r"409 (create|update|patch|delete) \S+", _FASTER),
)


@dataclass
class Finding:
    """A kind of problem, how often it was there, and one of them."""

    what: str
    example: str
    explanation: str = ""
    count: int = 0


@dataclass
class Findings:
    """All of them by kind."""

    by_kind: dict[str, Finding] = field(default_factory=dict)

    def add(self, what: str, example: str, explanation: str) -> None:
        """Count one more."""
        self.by_kind.setdefault(what, Finding(what, example, explanation)).count += 1

    @property
    def unexplained(self) -> list[Finding]:
        """Those without an explanation."""
        return [one for one in self.by_kind.values() if not one.explanation]

    def report(self) -> Iterator[str]:
        """One line or two for each, the most frequent first."""
        for one in sorted(self.by_kind.values(), key=lambda one: -one.count):
            yield f"  {one.count:5} x {one.what}"
            if not one.explanation:
                yield f"          UNEXPLAINED: {one.example}"


def log_findings(lines: Iterable[str]) -> Findings:
    """The warnings and errors in a log of kube-controller-manager, and what ended it."""
    found = Findings()
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            if line.startswith(("panic:", "fatal error:")):
                found.add(line, line, "")
            continue
        explanation = next((why for pattern, why in _EXPLAINED_LINES if re.search(pattern, line)), "")
        text = match["text"]
        head = text[1 : text.index('"', 1)] if text.startswith('"') and '"' in text[1:] else _NAMES.sub("…", text)
        what = f"{match['severity']} {match['file']}: {head}"[:120]
        found.add(f"{what} ({explanation})" if explanation else what, line[:600], explanation)
    return found


class Refusals:
    """The requests of kube-controller-manager that the server refused."""

    def __init__(self, is_ending: Callable[[str], bool]) -> None:
        """`is_ending` says whether a namespace is being deleted, or gone."""
        self._is_ending = is_ending
        self.requests = 0
        self.findings = Findings()

    def record(self, event: AuditEvent) -> None:
        """Count one request."""
        if not event.user_agent.startswith(_AGENT):
            return
        self.requests += 1
        if event.status < 400:
            return
        asked = f"{event.status} {event.verb} {event.path}"
        explanation = next((why for pattern, why in _EXPLAINED_REFUSALS if re.fullmatch(pattern, asked)), "")
        if (event.status, event.verb) == (403, "create") and self._is_ending(event.namespace):
            explanation = "its namespace is being deleted"
        resource = f"{event.resource}/{event.subresource}" if event.subresource else event.resource
        what = f"{event.status} {event.verb} {resource}"
        self.findings.add(
            f"{what} ({explanation})" if explanation else what, f"{event.path} by {event.user}", explanation
        )
