"""The interface of a control plane that runs on this machine, for tests and for development.

It is a Kubernetes API server with what belongs to it. It is not a cluster: no node runs a pod.
"""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kubewright.api.errors import explained, refusing
from kubewright.client import Client, Config
from kubewright.controlplane.errors import ControlPlaneError
from kubewright.controlplane.user import User

if TYPE_CHECKING:
    from kubewright.controlplane.controllers.clock import Clock
    from kubewright.controlplane.definitions import DefinitionSource
    from kubewright.controlplane.embedded.auth.users import UserInfo
    from kubewright.controlplane.embedded.plane import EmbeddedControlPlane


class ControlPlane(ABC):
    """An async context manager: it runs inside the `async with` and leaves nothing behind.

    `start` and `stop` do the same explicitly. A real control plane is bound to no event loop once it runs.
    """

    if not TYPE_CHECKING:
        __await__ = __enter__ = __exit__ = refusing(
            "a control plane runs in a block: write async with ControlPlane.embedded() as cluster"
        )

        def __new__(cls, *_: object, **__: object) -> ControlPlane:
            """Refuse the class itself, which is neither of the two."""
            if cls is ControlPlane:
                raise TypeError("there are two: write ControlPlane.embedded(...) or ControlPlane.real(...)")
            return super().__new__(cls)

    @staticmethod
    @explained
    def real(
        *,
        controller_manager: bool = False,
        api_server_flags: Sequence[str] = (),
        definitions: Sequence[DefinitionSource] = (),
        timeout: float = 60.0,
    ) -> ControlPlane:
        """The real kube-apiserver and etcd, and kube-controller-manager if requested.

        `api_server_flags` are added to kube-apiserver's own, such as `--runtime-config=api/beta=true`. `definitions`
        are files and folders of CustomResourceDefinitions, and classes of kinds, as for `embedded`. After `timeout`
        seconds without becoming ready, `start` raises StartFailed.
        """
        # Here, because it needs `cryptography`, which is an extra.
        from kubewright.controlplane.real import RealControlPlane

        return RealControlPlane(
            controller_manager=controller_manager,
            api_server_flags=api_server_flags,
            definitions=definitions,
            timeout=timeout,
        )

    @staticmethod
    @explained
    def embedded(
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tokens: Mapping[str, UserInfo] | None = None,
        clock: Clock | None = None,
        controllers: Collection[str] | None = None,
        nodes: int = 1,
        definitions: Sequence[DefinitionSource] = (),
        random: Random | None = None,
    ) -> EmbeddedControlPlane:
        """An API server in this process, in a fraction of a second and without any binaries.

        It belongs to the event loop it is started in. `tokens` maps static bearer tokens to their users,
        `clock` is the time of the server and of its controllers (`kubewright.testing.clock.VirtualClock` is one that
        a test moves), `controllers` are the names of those that run (None: all).
        Pods are scheduled to simulated `nodes` and simulated there; with 0 they stay pending, as on a real server.
        `definitions` are installed before the control plane is ready: files and folders of CustomResourceDefinitions
        (`"config/crd"`), classes of kinds (one per version), or definitions. Their objects can be created at once.
        `random` makes uids and generated names; with a seeded one they are the same in every run.
        """
        try:
            from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] not in ("cryptography", "re2", "uvicorn"):
                raise
            raise ControlPlaneError(
                f"an embedded control plane needs the package {error.name}: pip install 'kubewright[controlplane]'"
            ) from None

        return EmbeddedControlPlane(
            host=host,
            port=port,
            tokens=tokens,
            clock=clock,
            controllers=controllers,
            nodes=nodes,
            definitions=definitions,
            random=random,
        )

    @abstractmethod
    async def start(self) -> None:
        """Return when the server is ready for every request. A failure or a cancellation leaves nothing behind."""

    @abstractmethod
    async def stop(self) -> None:
        """End the server and discard everything it stored. May be called twice."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    @abstractmethod
    def admin(self) -> User:
        """The user who may do everything (group system:masters)."""

    @property
    @abstractmethod
    def version(self) -> str:
        """The version of Kubernetes that the server reports, such as `v1.36.4`."""

    @abstractmethod
    def add_user(self, name: str, groups: Iterable[str] = ()) -> User:
        """A further user, known to the server at once and, until a role is bound to it, without any rights."""

    @abstractmethod
    async def kubectl(
        self, *arguments: str, input: str | None = None, kubeconfig: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as admin, or with the text of another `kubeconfig`; `input` is its standard input.

        With `check`, an exit code other than 0 raises KubectlFailed.
        """

    def client(self, user: User | None = None) -> Client:
        """A client of this server, as admin or as another user. The caller closes it."""
        return Client(Config.from_kubeconfig_text((user or self.admin).kubeconfig))

    @property
    def url(self) -> str:
        """The address of the API server."""
        return self.admin.server

    @property
    def ca_certificate(self) -> str:
        """The certificate, PEM, of the authority that signed the server's."""
        return self.admin.ca_certificate

    def kubeconfig(self) -> str:
        """The admin's kubeconfig as YAML text. It holds a private key."""
        return self.admin.kubeconfig

    def write_kubeconfig(self, path: str | os.PathLike[str]) -> Path:
        """Write the admin's kubeconfig to `path`, readable only by its owner."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            # A file that was there before keeps its mode otherwise.
            os.fchmod(descriptor, 0o600)
            file.write(self.kubeconfig())
        return Path(path)
