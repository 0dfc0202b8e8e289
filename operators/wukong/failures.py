"""Failures that a retry alone does not fix. The name of the class is the reason of a condition."""

from __future__ import annotations


class Failure(Exception):
    """A user has to act; it is retried after a fixed delay."""


class InvalidSpec(Failure):
    """What the spec says cannot be made."""


class NameTaken(Failure):
    """An object that is not a child has the name of one."""


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
