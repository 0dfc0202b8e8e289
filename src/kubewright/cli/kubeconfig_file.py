"""The kubeconfig that `kubewright controlplane` writes while it runs; files of others are not touched.

A file is ours when it contains only what such a run writes: one cluster, user and context of these names.
A file to which a cluster was added, or that was replaced, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubewright.client.config.kubeconfig import Kubeconfig
from kubewright.client.errors import ConfigError
from kubewright.controlplane import ControlPlane, ControlPlaneError

_CLUSTER, _USER, _CONTEXT = "kubewright", "admin", "admin@kubewright"


def must_be_ours(path: Path) -> None:
    """Raise `ControlPlaneError` unless the file does not exist, is empty, or is of an earlier run."""
    if not path.exists():
        return
    if not path.is_file():
        raise ControlPlaneError(f"cannot write the kubeconfig {str(path)!r}: it is not a file")
    if path.stat().st_size and _ours(path) is None:
        raise ControlPlaneError(
            f"the file {str(path)!r} is not a kubeconfig that this command has written: name another one with "
            "--kubeconfig FILE, or overwrite it with --force"
        )


@contextmanager
def kubeconfig_file(plane: ControlPlane, path: Path) -> Iterator[None]:
    """The file has the admin's kubeconfig within the block, and is removed after it if it is unchanged."""
    try:
        plane.write_kubeconfig(path)
    except OSError as error:
        raise ControlPlaneError(f"cannot write the kubeconfig {str(path)!r}: {error.strerror}") from None
    written = _ours(path)
    try:
        yield
    finally:
        if written is not None and _ours(path) == written:
            path.resolve().unlink()  # of a link, what holds the credentials


def _ours(path: Path) -> str | None:
    """The certificate authority of the control plane that a kubeconfig of ours is for, which is unique."""
    if not path.is_file():
        return None
    try:
        found = Kubeconfig.from_files([path])
    except ConfigError:
        return None
    if [*found.clusters, *found.users, *found.contexts] != [_CLUSTER, _USER, _CONTEXT]:
        return None
    return found.clusters[_CLUSTER].value.certificate_authority_data
