"""What is deployed: an operator, and the names that its objects have."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Sequence
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct, field
from msgspec.structs import force_setattr

from kubewright.api.core.v1 import EnvFromSource, EnvVar, ResourceRequirements
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.api.quantity import Quantity
from kubewright.api.rbac.v1 import ClusterRole, Role
from kubewright.api.resources import Object
from kubewright.deployment.request_cleanup import RequestCleanup
from kubewright.manager.manager import GRACE
from kubewright.manifest.errors import ManifestError
from kubewright.webhook import AdmissionWebhook, Versions

T = TypeVar("T", bound=Object)

USER: Final = 65532
"""The user and group that the image runs as, as in distroless images."""
HEALTH_PORT, METRICS_PORT, WEBHOOK_PORT = 8081, 8443, 9443
NAME_LABEL: Final = "app.kubernetes.io/name"
CLEANUP: Final = "-cleanup"
"""What the objects of the clean-up are called after the name of the operator."""

# The longest names that are made of it, "-webhook" and "-metrics", are labels of 63 characters.
_MAX_NAME_LENGTH = 63 - len("-webhook")
_MAX_CRON_JOB_NAME_LENGTH = 52
_LABEL = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
_Types: TypeAlias = "type | tuple[type, ...]"
# What programs without type checks get wrong most often: one instead of several, or their JSON.
_FIELDS: Final[dict[str, tuple[_Types, str]]] = {
    "name": (str, "a text"),
    "image": (str, "a text"),
    "namespace": (str, "a text"),
    "replicas": (int, "a number"),
    "grace": ((int, float), "a number"),
}
_LISTS: Final[dict[str, tuple[_Types, str]]] = {
    "kinds": (type, "a list of classes"),
    "webhooks": ((AdmissionWebhook, Versions), "a list of what serve_webhooks is given"),
    "roles": ((ClusterRole, Role), "a list of ClusterRole(...) and Role(...)"),
    "objects": (Object, "a list of objects, such as ConfigMap(...)"),
    "samples": (Object, "a list of objects"),
    "arguments": (str, 'a list of texts, such as ["--zone=eu"]'),
    "env": (EnvVar, "a list of EnvVar(...)"),
    "env_from": (EnvFromSource, "a list of EnvFromSource(...)"),
}


def _default_resources() -> ResourceRequirements:
    return ResourceRequirements(
        requests={"cpu": Quantity("50m"), "memory": Quantity("128Mi")}, limits={"memory": Quantity("512Mi")}
    )


class Operator(Struct, frozen=True, kw_only=True):
    """An operator as it is deployed. Raises `ManifestError` for what no server would accept."""

    name: str
    """That of `run(name=...)`: the Deployment, its ServiceAccount and its lease are called so."""
    image: str
    """Its ENTRYPOINT runs the operator, and gets the flags of the Deployment: see `dockerfile_of`."""
    namespace: str = ""
    """`NAME-system` unless given."""
    kinds: Sequence[type[Object]] = ()
    """Its own kinds, one class for each version; those of `webhooks` that convert need not be repeated."""
    webhooks: Sequence[AdmissionWebhook[object] | Versions] = ()
    """As given to `serve_webhooks`."""
    roles: Sequence[ClusterRole | Role] = ()
    """What it may do; they are bound to its ServiceAccount. A Role is in its namespace, unless it names another."""
    objects: Sequence[Object] = ()
    """What else is deployed with it."""
    cleanup: RequestCleanup | None = None
    """When its finished requests are deleted, besides what it does itself."""
    samples: Sequence[Object] = ()
    """Objects to try it with; they are not deployed."""
    arguments: Sequence[str] = ()
    """Flags of its own."""
    env: Sequence[EnvVar] = ()
    """Environment variables of its pods, such as those of its options. What is secret comes `value_from` a Secret."""
    env_from: Sequence[EnvFromSource] = ()
    """The Secrets and ConfigMaps whose keys are further variables."""
    replicas: int = 2
    """One leads, the others stand by with warm caches, and all serve webhooks."""
    grace: float = GRACE
    """As given to its manager; where that has no limit, what is enough."""
    resources: ResourceRequirements = field(default_factory=_default_resources)
    """There is no limit of CPU by default: a replica that is throttled loses its lease."""

    def __post_init__(self) -> None:
        self._check_types()
        if not re.fullmatch(_LABEL, self.name) or len(self.name) > _MAX_NAME_LENGTH:
            raise ManifestError(
                f'the operator is called "{self.name}": expected at most {_MAX_NAME_LENGTH} lower-case letters, digits '
                'and dashes, a letter first, such as "podmanager"'
            )
        if not self.namespace:
            force_setattr(self, "namespace", f"{self.name}-system")
        if not re.fullmatch(_LABEL, self.namespace):
            raise ManifestError(
                f'the operator {self.name} is to be deployed to the namespace "{self.namespace}": expected lower-case '
                "letters, digits and dashes, a letter first"
            )
        if not re.fullmatch(r"[^\s]+", self.image):
            raise ManifestError(
                f'the operator {self.name} has the image "{self.image}": expected a name and a tag, such as '
                f'"{self.name}:1.0"'
            )
        if self.cleanup is not None and len(f"{self.name}{CLEANUP}") > _MAX_CRON_JOB_NAME_LENGTH:
            raise ManifestError(
                f'the operator is called "{self.name}": with a clean-up, expected at most '
                f"{_MAX_CRON_JOB_NAME_LENGTH - len(CLEANUP)} characters, as names of Jobs are made of it"
            )
        if self.replicas < 1:
            raise ManifestError(f"the operator {self.name} has replicas={self.replicas}: expected at least 1")
        if not 0 <= self.grace < math.inf:
            raise ManifestError(f"the operator {self.name} has grace={self.grace}: expected seconds, 0 or more")

    def _check_types(self) -> None:
        for name, (kind, expected) in _FIELDS.items():
            _check_type(name, getattr(self, name), kind, expected)
        for name, (kind, expected) in _LISTS.items():
            given: object = getattr(self, name)
            _check_type(name, given, (list, tuple), expected)
            for each in given if isinstance(given, list | tuple) else ():
                _check_type(name, each, kind, expected)

    @property
    def bound_roles(self) -> list[ClusterRole | Role]:
        """Its roles, by namespace and name. A Role that names no namespace is in that of the operator."""
        placed = [*map(copy.deepcopy, self.roles)]
        for role in placed:
            if isinstance(role, Role) and not role.metadata.namespace:
                role.metadata.namespace = self.namespace
        return sorted(placed, key=lambda role: (role.metadata.namespace or "", role.metadata.name))

    @property
    def webhook_service(self) -> ObjectKey:
        """The Service by which the API server reaches webhooks."""
        return ObjectKey(self.namespace, f"{self.name}-webhook")

    @property
    def selector(self) -> dict[str, str]:
        """The labels by which its pods are selected."""
        return {NAME_LABEL: self.name, "control-plane": "controller-manager"}

    @property
    def labels(self) -> dict[str, str]:
        """The labels of every object."""
        return {NAME_LABEL: self.name, "app.kubernetes.io/managed-by": "kubewright"}

    def owns(self, obj: Object) -> bool:
        """Whether an object has these labels."""
        return self.labels.items() <= obj.metadata.labels.items()

    def labelled(self, obj: T) -> T:
        """A copy with the labels of every object besides its own."""
        labelled = copy.deepcopy(obj)
        labelled.metadata.labels = {**obj.metadata.labels, **self.labels}
        return labelled

    def metadata(self, suffix: str = "") -> ObjectMeta:
        """That of an object in its namespace, which is called as the operator is, with a suffix."""
        return ObjectMeta(name=f"{self.name}{suffix}", namespace=self.namespace, labels=self.labels)

    def cluster_metadata(self, name: str) -> ObjectMeta:
        """That of an object without a namespace."""
        return ObjectMeta(name=name, labels=self.labels)


def _check_type(name: str, given: object, kind: _Types, expected: str) -> None:
    if not isinstance(given, kind):
        # Only its type: objects may be secret.
        raise ManifestError(f"Operator({name}=...): found {type(given).__name__}, expected {expected}")
