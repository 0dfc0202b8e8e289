"""What the operator has requested of the API server, by the server's own audit log."""

from __future__ import annotations

from typing import NamedTuple

from kubewright.testing.audit_file import AuditFile

_READS = ("get", "list")
# An election renews its lease every few seconds, and a program asks at its start what it may do.
_NOT_COUNTED = ("leases", "selfsubjectaccessreviews", "")


class Counts(NamedTuple):
    """Requests for objects, by what they do."""

    reads: int
    writes: int


class Traffic:
    """Counts the requests of one user, but for watches: these are renewed every few minutes, whatever happens."""

    def __init__(self, audit: AuditFile, user: str) -> None:
        self._audit = audit
        self._user = user
        self._total = Counts(0, 0)

    def since_last(self) -> Counts:
        """Those that were answered since the last call."""
        verbs = [
            each.verb
            for each in self._audit.requests()
            if each.user == self._user and each.resource not in _NOT_COUNTED and each.verb != "watch"
        ]
        reads = sum(verb in _READS for verb in verbs)
        total, before = Counts(reads, len(verbs) - reads), self._total
        self._total = total
        return Counts(total.reads - before.reads, total.writes - before.writes)
