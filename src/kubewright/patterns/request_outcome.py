"""What an exception means for the request that was being carried out."""

from __future__ import annotations

from typing import Literal

from kubewright.client.errors import AlreadyExists, Conflict, CredentialError, KubernetesError, Unauthorized
from kubewright.controller import TerminalError
from kubewright.patterns.not_yet import NotYet


class Permanent(Exception):
    """The requested action cannot be done, now or later: the request fails with this message."""


def outcome_of(error: Exception) -> Literal["waiting", "error", "failed"]:
    """Whether the request waits for something, has met an error that may pass, or has failed."""
    if isinstance(error, NotYet):
        return "waiting"
    is_final = isinstance(error, Permanent | TerminalError | KubernetesError) and not is_temporary(error)
    return "failed" if is_final else "error"


def is_temporary(error: Exception) -> bool:
    """Whether it is known to pass by itself."""
    if isinstance(error, KubernetesError):
        # Not the fault of the request: others were faster, or our own credentials are not accepted.
        is_ours = isinstance(error, Conflict | AlreadyExists | Unauthorized | CredentialError)
        return error.is_temporary or is_ours
    return isinstance(error, OSError)  # connections of other clients, and timeouts
