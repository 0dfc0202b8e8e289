"""What the API server asks about Devboxes, beyond what schema and rules of the kind express."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from kubewright import FieldCause, Quantity, Review, validates

from .content import VOLUME
from .env_profile import is_exportable
from .names import JWT_VARIABLE
from .types import Devbox, DevboxSpec

_OWN_VOLUMES = (VOLUME, "archive", "devbox-ssh-keys", "devbox-env-profile")
_NEEDED = ("cpu", "memory")


@validates(Devbox)
def check_devbox(review: Review[Devbox]) -> list[FieldCause]:
    """Deny what could never run. What was stored before stays changeable: only a spec that changes is checked."""
    new, old = review.object.spec, review.old.spec if review.old is not None else None
    if old is not None and new == old:
        return []
    for variable in new.config.env:
        if not is_exportable(variable.name):
            review.warn(f"spec.config.env: {variable.name} is not exported to login shells, which take other names")
    return [
        *_network_errors(new, old),
        *_environment_errors(new),
        *_resource_errors(new),
        *_volume_errors(new),
    ]


def _network_errors(new: DevboxSpec, old: DevboxSpec | None) -> Iterator[FieldCause]:
    if new.network.type == "Tailnet" and (old is None or old.network.type != "Tailnet"):
        yield FieldCause.not_supported("spec.network.type", new.network.type, ["NodePort", "SSHGate"])
    ports = [*new.config.ports, *new.network.extra_ports]
    numbers = Counter((port.container_port, port.protocol or "TCP") for port in ports)
    for (number, protocol), count in numbers.items():
        if count > 1:
            yield FieldCause.duplicate("spec.config.ports", f"{number}/{protocol}")
    for name, count in Counter(port.name for port in ports if port.name).items():
        if count > 1:
            yield FieldCause.duplicate("spec.config.ports", name)


def _environment_errors(new: DevboxSpec) -> Iterator[FieldCause]:
    for position, variable in enumerate(new.config.env):
        path = f"spec.config.env[{position}]"
        if variable.name == JWT_VARIABLE:
            yield FieldCause.forbidden(f"{path}.name", f"{JWT_VARIABLE} is set by the operator")
        if "\0" in (variable.value or ""):
            yield FieldCause.invalid(f"{path}.value", "a value with a NUL", "no process can have it in its environment")


def _resource_errors(new: DevboxSpec) -> Iterator[FieldCause]:
    for name in _NEEDED:
        amount = new.resource.get(name)
        if amount is None:
            yield FieldCause.required(f"spec.resource.{name}", "a Devbox has limits of cpu and memory")
        elif amount <= Quantity(0):
            yield FieldCause.invalid(f"spec.resource.{name}", str(amount), "must be greater than 0")
    if new.storage_limit is not None and new.storage_limit <= Quantity(0):
        yield FieldCause.invalid("spec.storageLimit", str(new.storage_limit), "must be greater than 0")


def _volume_errors(new: DevboxSpec) -> Iterator[FieldCause]:
    for position, volume in enumerate(new.config.volumes):
        if volume.name in _OWN_VOLUMES:
            yield FieldCause.forbidden(f"spec.config.volumes[{position}].name", f"{volume.name} is the operator's own")
    for position, mount in enumerate(new.config.volume_mounts):
        if mount.mount_path.rstrip("/") == new.config.working_dir.rstrip("/"):
            path = f"spec.config.volumeMounts[{position}].mountPath"
            yield FieldCause.forbidden(path, "the working directory is the content, which has a volume of its own")
