"""Simulations of KubeVirt, CDI and NMState for tests and for trying the operator out. The operator does not know them.

They are controllers like any other: `setup(manager)`, or `python -m kubewright_operators.wukong.simulators`. The
definitions of the kinds are in `DEFINITIONS`. Volumes are not simulated here: the embedded control plane does that.
"""

from __future__ import annotations

from pathlib import Path

from kubewright import Manager

from .cdi import CDIScript, set_up_cdi
from .kubevirt import KubeVirtScript, migrate, set_up_kubevirt, shut_down, start, stop
from .nmstate import NMStateScript, set_up_nmstate
from .snapshots import SnapshotScript, set_up_snapshots

DEFINITIONS = Path(__file__).parent / "definitions"
"""The folder with the definitions of all kinds, a file for each of kubevirt, snapshots, cdi, multus and nmstate."""


def setup(manager: Manager) -> None:
    """All of them, as they are when nothing goes wrong."""
    set_up_kubevirt(manager)
    set_up_snapshots(manager)
    set_up_cdi(manager)
    set_up_nmstate(manager)


__all__ = [
    "DEFINITIONS",
    "CDIScript",
    "KubeVirtScript",
    "NMStateScript",
    "SnapshotScript",
    "migrate",
    "set_up_cdi",
    "set_up_kubevirt",
    "set_up_nmstate",
    "set_up_snapshots",
    "setup",
    "shut_down",
    "start",
    "stop",
]
