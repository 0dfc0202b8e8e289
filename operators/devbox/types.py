"""The kind Devbox, in the version it is stored in: `kubectl get devboxes`."""

from __future__ import annotations

from typing import Annotated, Literal

from kubewright import Column, Condition, Meta, Model, Quantity, Resource, Rule, Time, field, resource
from kubewright.api import Choice, Int32
from kubewright.api.core.v1 import (
    Affinity,
    ContainerPort,
    ContainerStatus,
    EnvVar,
    Toleration,
    Volume,
    VolumeMount,
)

from .names import GROUP, MAX_NAME_LENGTH

SSH_PORT = 22
APP_PORT = 8080
PROJECT = "/home/devbox/project"

State = Literal["Running", "Paused", "Stopped", "Shutdown"]
NetworkType = Literal["NodePort", "Tailnet", "SSHGate"]
CommitStatus = Literal["Success", "Failed", "Pending", "Committing"]
Phase = Literal[
    "Running",
    "Pending",
    "Paused",
    "Pausing",
    "Stopped",
    "Stopping",
    "Shutdown",
    "Shutting",
    "Error",
    "Unknown",
]

NAME_FITS = Rule(
    f"size(self.metadata.name) <= {MAX_NAME_LENGTH} && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",
    message=f"the name must have at most {MAX_NAME_LENGTH} characters, begin with a letter and have no dots: its "
    "Services, its host and its commits are called by it",
)
_STATE_CHANGES = "self.spec.state == oldSelf.spec.state"
_RECORD = "self.status.commitRecords[self.status.contentID]"
STATE_RULES = [
    Rule(
        f"{_STATE_CHANGES} || (has(self.status) && has(self.status.contentID) && has(self.status.commitRecords) && "
        "self.status.contentID in self.status.commitRecords)",
        message="the state cannot be changed before the operator has initialised the Devbox: wait for status.contentID",
        reason="FieldValueForbidden",
        field_path=".spec.state",
    ),
    Rule(
        f"{_STATE_CHANGES} || !has(self.status) || !has(self.status.contentID) || !has(self.status.commitRecords) || "
        f"!(self.status.contentID in self.status.commitRecords) || {_RECORD}.commitStatus != 'Committing'",
        message="the state cannot be changed while the content is committed: wait until the condition CommitInProgress "
        "is not True",
        reason="FieldValueForbidden",
        field_path=".spec.state",
    ),
    Rule(
        "!(oldSelf.spec.state == 'Shutdown' && self.spec.state == 'Stopped')",
        message="a Devbox that is shut down has nothing to stop: set Running",
        reason="FieldValueForbidden",
        field_path=".spec.state",
    ),
]


class Config(Model):
    """What runs in the container."""

    user: str = "devbox"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    command: list[str] = []
    args: list[str] = []
    working_dir: Annotated[str, Meta(min_length=2, max_length=4096, pattern="^/[^:]*[^:/][^:]*$")] = PROJECT
    """Where the content is: an absolute path, and not the root."""
    env: list[EnvVar] = []
    release_command: list[str] = ["/bin/bash", "-c"]
    release_args: list[str] = [f"{PROJECT}/entrypoint.sh"]
    ports: list[ContainerPort] = [ContainerPort(name="devbox-ssh-port", container_port=SSH_PORT, protocol="TCP")]
    app_ports: list[ContainerPort] = [ContainerPort(name="devbox-app-port", container_port=APP_PORT, protocol="TCP")]
    volume_mounts: list[VolumeMount] = []
    volumes: list[Volume] = []


class Network(Model):
    """How the container is reached."""

    type: Choice[NetworkType]
    extra_ports: list[ContainerPort] = []


class DevboxSpec(Model):
    """What runs, whether it runs, and with how much."""

    image: Annotated[str, Meta(min_length=1)]
    resource: Annotated[dict[str, Quantity], Meta(min_length=1)]
    network: Network
    state: Choice[State] = "Running"
    template_id: str = field(default="", name="templateID")
    config: Config = field(default_factory=Config)
    storage_limit: Quantity | None = None
    runtime_class_name: str | None = None
    node_selector: dict[str, str] = {}
    tolerations: list[Toleration] = []
    affinity: Affinity | None = None


class CommitRecord(Model):
    """What one content began from, where it was, and what became of it."""

    base_image: str
    commit_image: str = ""
    node: str = ""
    generate_time: Time | None = None
    schedule_time: Time | None = None
    start_time: Time | None = None
    """When a pod first ran with it: since then all of it is on its volume."""
    update_time: Time | None = None
    commit_time: Time | None = None
    commit_status: Choice[CommitStatus] = "Pending"
    attempts: int = 0
    """How often it was tried to commit the content since it last ran."""
    message: str = ""
    """How far the attempt is, or why it failed."""


class NetworkStatus(Model):
    """How the container is reached."""

    type: Choice[NetworkType] = "NodePort"
    node_port: Int32 = 0
    unique_id: str = field(default="", name="uniqueID")
    tailnet: str = ""


class DevboxStatus(Model):
    """What there is."""

    observed_generation: int = 0
    state: Choice[State] = "Running"
    phase: Choice[Phase] = "Pending"
    content_id: str = field(default="", name="contentID")
    node: str = ""
    network: NetworkStatus = field(default_factory=NetworkStatus)
    commit_records: dict[str, CommitRecord] = {}
    restarts: int = 0
    """How often the pod was replaced after it had ended, since it last ran for a while."""
    last_container_status: ContainerStatus | None = None
    conditions: list[Condition] = []

    @property
    def record(self) -> CommitRecord:
        """That of the present content."""
        return self.commit_records[self.content_id]


@resource(
    f"{GROUP}/v1alpha2",
    plural="devboxes",
    columns=[
        Column("State", ".spec.state"),
        Column("NetworkType", ".status.network.type"),
        Column("UniqueID", ".status.network.uniqueID"),
        Column("NodePort", ".status.network.nodePort"),
        Column("Phase", ".status.phase"),
        Column("Node", ".status.node"),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    rules=[NAME_FITS, *STATE_RULES],
)
class Devbox(Resource[DevboxSpec, DevboxStatus]):
    """A development environment: a container whose content survives it."""
