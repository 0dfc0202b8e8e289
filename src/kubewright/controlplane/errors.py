"""The errors of a control plane. Every message names what was found and what to do about it."""

from __future__ import annotations


class ControlPlaneError(Exception):
    """Base of every error of a control plane that runs on this machine."""


class BinariesNotFound(ControlPlaneError):
    """There are no binaries of a real control plane here; the message names the ways to get them."""


class BinariesUnusable(ControlPlaneError):
    """A folder was named explicitly, and a program in it is missing or cannot be run."""


class BuildFailed(ControlPlaneError):
    """The binaries could not be built; nothing of the attempt is left in the cache."""


class StartFailed(ControlPlaneError):
    """A program ended or did not become ready; the message holds its command and the end of its log."""


class InvalidDefinition(ControlPlaneError):
    """A CustomResourceDefinition to start with is wrong; the message names the file, the document and the field."""


class KubectlFailed(ControlPlaneError):
    """kubectl answered with an exit code other than 0."""

    def __init__(self, message: str, *, returncode: int, stdout: str, stderr: str) -> None:
        super().__init__(message)
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr
