"""Which cluster a command is about, and the user's consent to change it."""

from __future__ import annotations

import argparse
import ipaddress
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct, field

from kubewright.api.errors import KubernetesError
from kubewright.cli.cluster.reachability import check_reachable
from kubewright.cli.printable import printable_line
from kubewright.client import Client, Config

FIELD_MANAGER: Final = "kubewright-deploy"
"""The owner of the fields that commands apply."""

# What Docker Desktop calls the machine it runs on.
_LOCAL_NAMES: Final = ("localhost", "kubernetes.docker.internal")


class Refused(KubernetesError):
    """The user has not agreed. Nothing was changed."""


def add_cluster_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how the cluster is reached."""
    parser.add_argument("--kubeconfig", metavar="FILE", help="how to reach the cluster (default: as kubectl does)")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig to use")


def add_consent_argument(parser: argparse.ArgumentParser) -> None:
    """Add the answer to the question that is asked for clusters that are not local."""
    parser.add_argument("--yes", action="store_true", help="do not ask before a cluster that is not local is changed")


def add_change_arguments(parser: argparse.ArgumentParser) -> None:
    """Add all that commands have that show what they will do to a cluster before they do it."""
    add_cluster_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    add_consent_argument(parser)


class TargetCluster(Struct, frozen=True):
    """A cluster, and how to reach it."""

    config: Config
    warnings: set[str] = field(default_factory=set)
    """Those of the server that were printed."""

    def __str__(self) -> str:
        return f"{self.config.server} ({'in the cluster' if self.is_in_cluster else f'context {self.config.context}'})"

    @property
    def is_local(self) -> bool:
        """Whether its server is on this machine."""
        host = urlsplit(self.config.server).hostname or ""
        return self.config.proxy is None and is_this_machine(host)

    @property
    def is_in_cluster(self) -> bool:
        """Whether this runs in a pod there, as its service account."""
        return not self.config.context

    @asynccontextmanager
    async def reached(self, timeout: float) -> AsyncIterator[Client]:
        """A client, once the server has answered. Raises `Unreachable` with what is probably wrong."""
        await check_reachable(self.config, timeout=timeout)
        async with self.client() as client:
            yield client

    def client(self) -> Client:
        """A client that owns what it applies. Each warning of the server is printed once."""
        return Client(self.config, field_manager=FIELD_MANAGER, field_validation="Strict", on_warning=self._warn)

    def _warn(self, text: str) -> None:
        if text not in self.warnings:
            self.warnings.add(text)
            print(printable_line(f"warning: {text}"), file=sys.stderr)

    def consent(self, *, yes: bool) -> None:
        """Return if the cluster is local, `--yes` was given, or the user agrees. Raises `Refused`."""
        if not self.is_local and not yes:
            ask(f"Change {self}?", f"{self} is not a local cluster: confirm with --yes")


def cluster_of(options: argparse.Namespace) -> TargetCluster:
    """The cluster that arguments name."""
    return TargetCluster(Config.load(kubeconfig=options.kubeconfig, context=options.context))


def is_this_machine(host: str) -> bool:
    """Whether a name or an address is of the machine this runs on, without asking for its addresses."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host in _LOCAL_NAMES or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def ask(question: str, otherwise: str) -> None:
    """Return if the user answers with yes. Raises `Refused`, with a sentence where there is no terminal to ask on."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Refused(f"{otherwise} (there is no terminal to ask on)")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Refused("nothing was changed")
