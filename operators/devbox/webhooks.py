"""What the API server asks about Devboxes, beyond what schema and rules of the kind express."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from kubewright import FieldCause, Quantity, Review, validates
from kubewright.api.core.v1 import ContainerPort

from .content import VOLUME
from .env_profile import is_exportable
from .names import JWT_VARIABLE
from .network import port_name
from .types import Devbox, DevboxSpec

_OWN_VOLUMES = (VOLUME, "archive", "devbox-ssh-keys", "devbox-env-profile")
_NEEDED = ("cpu", "memory")
_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LABEL = re.compile("[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


@validates(Devbox)
def check_devbox(review: Review[Devbox]) -> list[FieldCause]:
    """Deny what could never run. What is stored already is no obstacle: every Devbox can be stopped."""
    new, old = review.object.spec, review.old.spec if review.old is not None else None
    if new == old:
        return []
    for variable in new.config.env:
        if not is_exportable(variable.name):
            review.warn(f"spec.config.env: {variable.name} is not exported to login shells, which take other names")
    known = frozenset[FieldCause]() if old is None else frozenset(_errors(old))
    return [error for error in _errors(new) if error not in known]


def _errors(spec: DevboxSpec) -> Iterator[FieldCause]:
    yield from _network_errors(spec)
    yield from _environment_errors(spec)
    yield from _resource_errors(spec)
    yield from _volume_errors(spec)
    yield from _metadata_errors(spec)


def _network_errors(new: DevboxSpec) -> Iterator[FieldCause]:
    if new.network.type == "Tailnet":
        yield FieldCause.not_supported("spec.network.type", new.network.type, ["NodePort", "SSHGate"])
    given = {"spec.config.ports": new.config.ports, "spec.network.extraPorts": new.network.extra_ports}
    for path, ports in given.items():
        for position, port in enumerate(ports):
            yield from _port_errors(f"{path}[{position}]", port)
    everything = [
        (port.container_port, port.protocol or "TCP", port_name(port)) for ports in given.values() for port in ports
    ]
    for (number, protocol), count in Counter((number, protocol) for number, protocol, _ in everything).items():
        if count > 1:
            yield FieldCause.duplicate("spec.config.ports", f"{number}/{protocol}")
    # Those of one number are named above.
    for name, count in Counter(name for *_, name in dict.fromkeys(everything)).items():
        if count > 1:
            yield FieldCause.duplicate("spec.config.ports", name)


def _port_errors(path: str, port: ContainerPort) -> Iterator[FieldCause]:
    """What the Service would be refused for."""
    if not 0 < port.container_port < 65536:
        yield FieldCause.invalid(f"{path}.containerPort", port.container_port, "must be between 1 and 65535")
    if not _LABEL.fullmatch(port_name(port)):
        expected = "must be at most 63 lower case letters, digits and -, and begin and end with a letter or digit"
        yield FieldCause.invalid(f"{path}.name", port.name, expected)


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


def _metadata_errors(new: DevboxSpec) -> Iterator[FieldCause]:
    """What no pod can be labelled or annotated with."""
    for path, given in (("labels", new.config.labels), ("annotations", new.config.annotations)):
        for name in given:
            if not _NAME.fullmatch(name):
                expected = "must be a name of at most 63 letters, digits, -, _ and ., perhaps after a domain and /"
                yield FieldCause.invalid(f"spec.config.{path}", name, expected)
    for name, value in new.config.labels.items():
        if not _VALUE.fullmatch(value):
            expected = "must be at most 63 letters, digits, -, _ and ., and begin and end with a letter or digit"
            yield FieldCause.invalid(f"spec.config.labels[{name}]", value, expected)
