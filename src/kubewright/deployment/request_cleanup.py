"""The clean-up of requests, as it is deployed with an operator: a CronJob that runs `kubewright requests cleanup`.

    Operator(name="user", image="user:1.0", cleanup=RequestCleanup(older_than=timedelta(days=7)))

A `RequestReconciler` deletes its requests by itself. This is for those that it does not see: of an operator that is not
running, of a kind that it has given up, or when they are to be kept longer than its retention time is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from kubewright.api.resources import Object, resource_info
from kubewright.api.shape import Shape
from kubewright.manager.durations import duration_text
from kubewright.manager.permissions import Permission
from kubewright.manifest.errors import ManifestError
from kubewright.patterns.request_status import FINISHED, Phase, RequestStatus


class RequestCleanup(Struct, frozen=True, kw_only=True):
    """When finished requests are deleted. Raises `ManifestError` for what no CronJob can do."""

    kinds: Sequence[type[Object]] = ()
    """Those of the operator's kinds whose status is a `RequestStatus`, unless given."""
    older_than: timedelta = timedelta(days=1)
    """How long ago they ended."""
    phases: Sequence[Phase] = FINISHED
    namespace: str = ""
    """Only those there; all unless given."""
    schedule: str = "0 * * * *"
    """As of a CronJob: every hour unless given."""

    def __post_init__(self) -> None:
        if self.older_than <= timedelta():
            raise ManifestError(
                f"requests are to be deleted that are older than {self.older_than}: expected more than 0"
            )
        if not self.phases or not set(self.phases) <= set(FINISHED):
            found = ", ".join(self.phases) or "none"
            raise ManifestError(f"requests are to be deleted in the phases {found}: expected {', '.join(FINISHED)}")
        if not re.fullmatch(r"@[a-z]+|(\S+\s+){4}\S+", self.schedule):
            raise ManifestError(
                f'requests are to be deleted at "{self.schedule}": expected what a CronJob has, such as "0 * * * *"'
            )
        for kind in self.kinds:
            if not is_request(kind):
                raise ManifestError(f"{kind.__name__} is not a kind of requests: its status is not a RequestStatus")

    def of(self, operator: str, kinds: Sequence[type[Object]]) -> RequestCleanup:
        """The same with the kinds of requests among these, where none were given. Raises `ManifestError` for none."""
        found = self.kinds or [kind for kind in kinds if is_request(kind)]
        if not found:
            raise ManifestError(
                f"the operator {operator} has a clean-up and no kind whose status is a RequestStatus: name kinds with "
                "RequestCleanup(kinds=[...])"
            )
        stored: dict[tuple[str, str], type[Object]] = {}  # one version is enough
        for kind in found:
            info = resource_info(kind)
            stored.setdefault((info.gvk.group, info.plural), kind)
        return replace(self, kinds=[stored[key] for key in sorted(stored)])

    @property
    def command(self) -> list[str]:
        """What its pod runs, which needs no right to read definitions."""
        where = [f"--namespace={self.namespace}"] if self.namespace else ["--all-namespaces"]
        phases = [] if {*self.phases} == {*FINISHED} else [f"--phase={phase}" for phase in self.phases]
        age = f"--older-than={duration_text(self.older_than)}"
        return ["python", "-m", "kubewright", "requests", "cleanup", *map(_resource, self.kinds), *where, *phases, age]

    @property
    def permissions(self) -> list[Permission]:
        """What it needs, and nothing else."""
        return [
            each
            for kind in self.kinds
            for each in Permission(kind, "list", "delete").within([self.namespace] if self.namespace else [])
        ]


def is_request(kind: type[Object]) -> bool:
    """Whether the status of a kind is a `RequestStatus`."""
    status = Shape("model", model=kind).fields.get("status")
    return status is not None and status.model is not None and issubclass(status.model, RequestStatus)


def _resource(kind: type[Object]) -> str:
    info = resource_info(kind)
    return f"{info.plural}.{info.gvk.version}.{info.gvk.group}"
