"""Devbox as it was in v1alpha1: it ran or was stopped, and its status had a history instead of records.

What v1alpha1 cannot express, as that a Devbox is paused and not stopped, stays as it is when a client of that version
changes something else.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from kubewright import Column, Meta, Model, Quantity, Resource, Rule, Time, field, resource
from kubewright.api import Choice, Int32
from kubewright.api.core.v1 import Affinity, Toleration

from .names import GROUP
from .types import (
    NAME_FITS,
    CommitRecord,
    CommitStatus,
    Config,
    Devbox,
    DevboxSpec,
    DevboxStatus,
    Network,
    NetworkStatus,
    NetworkType,
    Phase,
    State,
)

OldState = Literal["Running", "Stopped"]
OldCommitStatus = Literal["Success", "Failed", "Unknown", "Pending"]
OldPhase = Literal["Running", "Pending", "Stopped", "Stopping", "Error", "Unknown"]

_LAST = "self.status.commitHistory[size(self.status.commitHistory) - 1]"
STATE_RULE = Rule(
    "self.spec.state == oldSelf.spec.state || (has(self.status) && has(self.status.commitHistory) && "
    f"size(self.status.commitHistory) > 0 && {_LAST}.status != 'Unknown')",
    message="the state cannot be changed before the operator has initialised the Devbox, nor while its content is "
    "committed: wait until the last status in status.commitHistory is Pending or Failed",
    reason="FieldValueForbidden",
    field_path=".spec.state",
)

_STATES: dict[State, OldState] = {
    "Running": "Running",
    "Paused": "Stopped",
    "Stopped": "Stopped",
    "Shutdown": "Stopped",
}
_PHASES: dict[Phase, OldPhase] = {
    "Running": "Running",
    "Pending": "Pending",
    "Paused": "Stopped",
    "Pausing": "Stopping",
    "Stopped": "Stopped",
    "Stopping": "Stopping",
    "Shutdown": "Stopped",
    "Shutting": "Stopping",
    "Error": "Error",
}
_COMMITS: dict[CommitStatus, OldCommitStatus] = {
    "Success": "Success",
    "Failed": "Failed",
    "Pending": "Pending",
    "Committing": "Unknown",
}


class RuntimeRef(Model):
    """The runtime that a Devbox was made from."""

    name: str
    namespace: str = ""


class DevboxV1Alpha1Spec(Model):
    """What runs, whether it runs, and with how much."""

    image: Annotated[str, Meta(min_length=1)]
    resource: Annotated[dict[str, Quantity], Meta(min_length=1)]
    network: Network
    state: Choice[OldState] = "Running"
    squash: bool = False
    runtime_ref: RuntimeRef | None = None
    template_id: str = field(default="", name="templateID")
    config: Config = field(default_factory=Config)
    tolerations: list[Toleration] = []
    affinity: Affinity | None = None


class CommitHistory(Model):
    """One content: the last one in the history is the present one."""

    image: str = ""
    node: str = ""
    time: Time | None = None
    status: Choice[OldCommitStatus] = "Pending"


class NetworkV1Alpha1Status(Model):
    """How the container is reached."""

    type: Choice[NetworkType] = "NodePort"
    node_port: Int32 = 0
    tailnet: str = ""


class DevboxV1Alpha1Status(Model):
    """What there is."""

    phase: Choice[OldPhase] = "Pending"
    network: NetworkV1Alpha1Status = field(default_factory=NetworkV1Alpha1Status)
    commit_history: Annotated[list[CommitHistory], Meta(max_length=100)] = []


@resource(
    f"{GROUP}/v1alpha1",
    kind="Devbox",
    plural="devboxes",
    storage=False,
    columns=[
        Column("State", ".spec.state"),
        Column("NetworkType", ".status.network.type"),
        Column("NodePort", ".status.network.nodePort"),
        Column("Phase", ".status.phase"),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    rules=[NAME_FITS, STATE_RULE],
)
class DevboxV1Alpha1(Resource[DevboxV1Alpha1Spec, DevboxV1Alpha1Status]):
    """A development environment: a container whose content survives it."""

    def to_hub(self) -> Devbox:
        """In v1alpha2."""
        spec, status = self.spec, self.status
        network = status.network
        return Devbox(
            spec=DevboxSpec(
                image=spec.image,
                resource=spec.resource,
                network=spec.network,
                state=spec.state,
                template_id=spec.template_id,
                config=spec.config,
                tolerations=spec.tolerations,
                affinity=spec.affinity,
            ),
            status=DevboxStatus(
                phase=status.phase,
                network=NetworkStatus(type=network.type, node_port=network.node_port, tailnet=network.tailnet),
            ),
        )

    @classmethod
    def from_hub(cls, hub: Devbox) -> Self:
        """From v1alpha2."""
        spec, status = hub.spec, hub.status
        network = status.network
        return cls(
            spec=DevboxV1Alpha1Spec(
                image=spec.image,
                resource=spec.resource,
                network=spec.network,
                state=_STATES.get(spec.state, "Stopped"),
                template_id=spec.template_id,
                config=spec.config,
                tolerations=spec.tolerations,
                affinity=spec.affinity,
            ),
            status=DevboxV1Alpha1Status(
                phase=_PHASES.get(status.phase, "Unknown"),
                network=NetworkV1Alpha1Status(type=network.type, node_port=network.node_port, tailnet=network.tailnet),
                commit_history=[_history(record) for record in _in_order(status)],
            ),
        )


def _in_order(status: DevboxStatus) -> list[CommitRecord]:
    """The records in the order of their contents, the present one last."""
    past = [record for content_id, record in status.commit_records.items() if content_id != status.content_id]
    ordered = sorted(past, key=lambda record: str(record.generate_time))
    present = status.commit_records.get(status.content_id)
    return [*ordered, present] if present is not None else ordered


def _history(record: CommitRecord) -> CommitHistory:
    status = _COMMITS.get(record.commit_status, "Unknown")
    return CommitHistory(image=record.commit_image, node=record.node, time=record.generate_time, status=status)
