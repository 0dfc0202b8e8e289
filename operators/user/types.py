"""The kind User: `kubectl get users`."""

from __future__ import annotations

from typing import Annotated, Literal

from kubewright import Column, Condition, Model, Resource, Rule, Time, field, resource
from kubewright.api import Choice, Int32

from .names import API_VERSION, MAX_USER_LENGTH, RoleName

DEFAULT_EXPIRATION = 1_000_000_000
MIN_EXPIRATION = 600  # what API servers accept

NAME_FITS_A_NAMESPACE = Rule(
    f"!self.metadata.name.contains('.') && size(self.metadata.name) <= {MAX_USER_LENGTH}",
    message=f"the name must have at most {MAX_USER_LENGTH} characters and no dots, as the workspace ns-NAME has it",
)

Expiration = Annotated[
    Int32,
    Rule(
        f"self == 0 || self >= {MIN_EXPIRATION}",
        message=f"must be at least {MIN_EXPIRATION} seconds, or 0 for the default",
    ),
]
Phase = Choice[Literal["Pending", "Unknown", "Active"]]
Role = Choice[RoleName]


class UserSpec(Model):
    """How long the kubeconfig of a user is valid, and when it is to be replaced."""

    csr_expiration_seconds: Expiration = DEFAULT_EXPIRATION
    kube_config_rotate_at: Time | None = None


class KubeConfigSecret(Model):
    """Where the kubeconfig is; what is in it is nowhere else."""

    namespace: str
    name: str
    hash: str
    expiration_time: Time


class UserStatus(Model):
    """What there is."""

    phase: Phase = "Pending"
    observed_generation: int = 0
    observed_csr_expiration_seconds: Int32 = field(default=DEFAULT_EXPIRATION, name="observedCSRExpirationSeconds")
    observed_kube_config_rotate_at: Time | None = None
    kube_config_secret: KubeConfigSecret | None = None
    conditions: list[Condition] = []


@resource(
    API_VERSION,
    namespaced=False,
    columns=[
        Column("Phase", ".status.phase"),
        Column("ExpirationSeconds", ".status.observedCSRExpirationSeconds"),
        Column("Age", ".metadata.creationTimestamp"),
    ],
    rules=[NAME_FITS_A_NAMESPACE],
)
class User(Resource[UserSpec, UserStatus]):
    """Has a workspace, which is a namespace, and a kubeconfig to use it with."""

    spec: UserSpec = field(default_factory=UserSpec)
