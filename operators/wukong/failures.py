"""What goes wrong with a Wukong and does not get better at once. The name of the class is the reason of a condition."""

from __future__ import annotations


class Failure(Exception):
    """Somebody has to do something; it is tried again every now and then."""


class NameTaken(Failure):
    """An object of somebody else has the name of a child."""


class VolumeLost(Failure):
    """The content of a disk is gone."""


class ImportFailed(Failure):
    """The image of a disk could not be imported."""


class BridgeFailed(Failure):
    """NMState could not make a bridge on all nodes."""


class BridgeConflict(Failure):
    """Two networks want one bridge, and on different interfaces."""


class SSHKeyMissing(Failure):
    """The Secret has no public key."""
