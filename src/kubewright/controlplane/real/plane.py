"""`ControlPlane.real`: the genuine programs behind the interface of every control plane."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections.abc import Iterable, Sequence

from kubewright.controlplane.binaries import find_binaries
from kubewright.controlplane.definitions import DefinitionSource, install_definitions, load_definitions
from kubewright.controlplane.errors import ControlPlaneError
from kubewright.controlplane.plane import ControlPlane
from kubewright.controlplane.real.kubectl import run_kubectl
from kubewright.controlplane.real.processes import ChildProcess
from kubewright.controlplane.user import User

try:
    from kubewright.controlplane.real.launch import RunningPrograms, issue_user, launch
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "cryptography":
        raise
    raise ControlPlaneError(
        "a real control plane needs the package cryptography: pip install 'kubewright[controlplane]'"
    ) from None


class RealControlPlane(ControlPlane):
    """kube-apiserver, etcd and kube-controller-manager as child processes that never outlive this one."""

    def __init__(
        self,
        *,
        controller_manager: bool,
        api_server_flags: Sequence[str],
        definitions: Sequence[DefinitionSource],
        timeout: float,
    ) -> None:
        self._controller_manager = controller_manager
        self._api_server_flags = tuple(api_server_flags)
        self._definitions = definitions
        self._timeout = timeout
        self._starting = False
        self._running: RunningPrograms | None = None

    async def start(self) -> None:
        """Return when the server is ready, in about 3 seconds. A failure or a cancellation leaves nothing behind."""
        if self._starting or self._running is not None:
            raise ControlPlaneError("this control plane was started already")
        definitions = load_definitions(self._definitions)
        self._starting = True
        abandoned = threading.Event()
        launching = asyncio.ensure_future(asyncio.to_thread(self._launch, abandoned))
        try:
            self._running = await asyncio.shield(launching)
        except asyncio.CancelledError:
            abandoned.set()
            await asyncio.wait([launching])
            if launching.exception() is None:
                await asyncio.to_thread(launching.result().group.close)
            raise
        finally:
            self._starting = False
        if definitions:
            try:
                async with self.client() as admin:
                    await install_definitions(admin, definitions, timeout=self._timeout)
            except BaseException:
                await self.stop()
                raise

    async def stop(self) -> None:
        """Kill the programs and remove their directory."""
        running, self._running = self._running, None
        if running is not None:
            await asyncio.to_thread(running.group.close)

    @property
    def admin(self) -> User:
        """A member of system:masters."""
        return self._started.admin

    @property
    def version(self) -> str:
        """The version that kube-apiserver reports."""
        return self._started.version

    @property
    def programs(self) -> tuple[ChildProcess, ...]:
        """The child processes: etcd, kube-apiserver and, if requested, kube-controller-manager, with their logs."""
        return self._started.programs

    def add_user(self, name: str, groups: Iterable[str] = ()) -> User:
        """A user with a client certificate of this control plane's authority."""
        return issue_user(self._started.authority, self.url, name, groups)

    async def kubectl(
        self, *arguments: str, input: str | None = None, kubeconfig: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run the kubectl that came with the server."""
        started = self._started
        config = kubeconfig or started.admin.kubeconfig
        return await run_kubectl(
            started.group, started.binaries.kubectl, arguments, kubeconfig=config, stdin=input, check=check
        )

    @property
    def _started(self) -> RunningPrograms:
        if self._running is None:
            raise ControlPlaneError(
                "the control plane is not running: use it inside `async with`, or call start() first"
            )
        return self._running

    def _launch(self, abandoned: threading.Event) -> RunningPrograms:
        return launch(
            find_binaries(controller_manager=self._controller_manager),
            controller_manager=self._controller_manager,
            api_server_flags=self._api_server_flags,
            timeout=self._timeout,
            abandoned=abandoned,
        )
