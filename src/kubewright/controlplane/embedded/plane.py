"""`ControlPlane.embedded`: an API server in this process, behind the interface of every control plane."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import subprocess
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from random import Random

from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509 import load_pem_x509_certificate

from kubewright.api.core.v1 import ServiceAccount
from kubewright.cache import Cache
from kubewright.client import Client, Config
from kubewright.client.http.transport import Transport
from kubewright.client.wait import exists
from kubewright.controlplane.binaries import find_binaries
from kubewright.controlplane.certificates import CertificateAuthority, KeyPair
from kubewright.controlplane.controllers import CONTROLLERS
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.controller_tasks import ControllerTasks
from kubewright.controlplane.controllers.node_script import NodeScript
from kubewright.controlplane.controllers.pod_script import PodScript, ScriptedBehaviour
from kubewright.controlplane.controllers.storage_class import default_storage_class
from kubewright.controlplane.definitions import DefinitionSource, install_definitions, load_definitions
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.endpoints.nonresource import VERSION
from kubewright.controlplane.embedded.http.asgi import Application
from kubewright.controlplane.embedded.http.in_process import ControllersClient, InProcessTransport
from kubewright.controlplane.embedded.http.serving import Serving
from kubewright.controlplane.embedded.server.assembly import Assembled, assemble
from kubewright.controlplane.embedded.server.audit import AuditLog
from kubewright.controlplane.embedded.server.faults import Faults
from kubewright.controlplane.embedded.storage.store import Snapshot, StoreChange
from kubewright.controlplane.errors import ControlPlaneError
from kubewright.controlplane.plane import ControlPlane
from kubewright.controlplane.real.kubectl import run_kubectl
from kubewright.controlplane.real.processes import ProcessGroup
from kubewright.controlplane.user import User

_HOSTS = ("127.0.0.1", "::1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "10.0.0.1")

# Addresses that stand for all of this machine's, and the one of each family that it can be reached by from within.
_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (nothing is bound to it here)


# Without nodes nothing is scheduled and no pod is simulated.
_OF_NODES = frozenset(("nodes", "scheduler", "pod-simulator"))

# How often expired objects are deleted. Readers do not see them even before.
_SWEEP_SECONDS = 60.0
_INSTALL_SECONDS = 60.0
# X509_V_FLAG_NO_CHECK_TIME of OpenSSL, for which Python has no name.
_NO_CHECK_TIME = 0x200000


@dataclass(frozen=True, slots=True)
class PlaneSnapshot:
    """The state of an embedded control plane at one moment, for its `reset`."""

    objects: Snapshot
    failed_nodes: Mapping[str, datetime]
    pods: Sequence[ScriptedBehaviour]


class EmbeddedControlPlane(ControlPlane):
    """A server in memory. It lives in the event loop that started it and ends with it; nothing is left behind.

    For tests it can do what a real one cannot: `faults` injects failures, `nodes` and `pods` are simulated and fail on
    demand, `compact` drops old revisions, `snapshot` and `reset` restore a state in milliseconds, `audit` has every
    request.
    """

    def __init__(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tokens: Mapping[str, UserInfo] | None = None,
        clock: Clock | None = None,
        controllers: Collection[str] | None = None,
        nodes: int = 1,
        definitions: Sequence[DefinitionSource] = (),
        random: Random | None = None,
    ) -> None:
        unknown = sorted(set(controllers or ()) - CONTROLLERS.keys())
        if unknown:
            raise ControlPlaneError(
                f"there is no controller {', '.join(unknown)} (there are: {', '.join(sorted(CONTROLLERS))})"
            )
        self._controllers = controllers
        self._nodes = nodes
        self._definitions = definitions
        self._random = random
        self._host = host
        self._port = port
        self._tokens = tokens
        self._clock = clock or SystemClock()
        self._stack = AsyncExitStack()
        self._running: _Running | None = None

    async def start(self) -> None:
        """Return when the server answers, and admits pods if the controllers for that run."""
        if self._running is not None:
            raise ControlPlaneError("this control plane was started already")
        definitions = load_definitions(self._definitions)
        authority = CertificateAuthority()
        assembled = assemble(
            tokens=self._tokens,
            clock=lambda: self._clock.now().timestamp(),
            client_ca=authority.certificate,
            random=self._random,
            objects=[default_storage_class()] if self._nodes and self._is_chosen("volume-provisioner") else (),
        )
        pair = authority.server("kube-apiserver", hosts={*_HOSTS, self._host, *_names_of(self._host)})
        try:
            serving = Serving(Application(assembled.server), _tls(authority, pair), self._host, self._port)
        except OSError as error:
            raise _cannot_listen(self._host, self._port, error) from None
        async with AsyncExitStack() as stack:
            await serving.start()
            stack.push_async_callback(serving.stop)
            following = asyncio.create_task(assembled.definitions.run())
            stack.push_async_callback(_end, following)
            stack.callback(_Repeated(_SWEEP_SECONDS, self._clock, assembled.store.sweep).cancel)
            # A server that listens on all interfaces is reachable on loopback, too.
            host = _EVERYWHERE.get(self._host, self._host)
            address = f"[{host}]" if ":" in host else host
            stack.callback(self._forget)
            self._running = _Running(assembled, authority, f"https://{address}:{serving.port}", NodeScript(self._clock))
            assembled.server.endpoints.url = self._running.url
            client = await stack.enter_async_context(self._controllers_client())
            # Quiet, because their errors are usually the subject of a test of another program. Not streamed, because
            # a streamed list ends with a bookmark, and these watches have none.
            cache = Cache(client, stream=False, quiet=True)
            stack.push_async_callback(_end, asyncio.create_task(cache.run()))
            tasks = ControllerTasks(cache)
            stack.push_async_callback(tasks.stop)
            self._start_controllers(tasks, client, cache, authority)
            await asyncio.sleep(0)  # until they are made: then `nodes` knows the nodes
            if self._is_chosen("serviceaccounts"):
                # Before it is there, pods are refused.
                await client.wait_for(ServiceAccount, "default", exists, namespace="default")
            if definitions:
                async with self.client() as admin:
                    await install_definitions(admin, definitions, timeout=_INSTALL_SECONDS)
            self._stack = stack.pop_all()

    def _forget(self) -> None:
        self._running = None

    def _controllers_client(self) -> Client:
        # They watch every kind, deprecated ones too. As in the real one, warnings about that are dropped.
        name, user = "kube-controller-manager", self.admin
        return ControllersClient(
            Config.from_kubeconfig_text(user.kubeconfig),
            transport=self._transport(user, internal=True),
            user_agent=name,
            # The same name in managed fields as in the user agent.
            field_manager=name,
            on_warning=lambda warning: None,
        )

    def _start_controllers(
        self, tasks: ControllerTasks, client: Client, cache: Cache, authority: CertificateAuthority
    ) -> None:
        assembled = self._started.assembled
        options: dict[str, dict[str, object]] = {
            "root-ca": {"ca_certificate": authority.certificate},
            "csrsigning": {"authority": authority},
            "serviceaccount-token": {"signer": assembled.signer, "ca_certificate": authority.certificate},
            "nodes": {"count": self._nodes, "script": self.nodes, "readers": assembled.server.readers},
            "pod-simulator": {"script": self.pods, "nodes": self.nodes},
            "node-lifecycle": {"script": self.nodes},
        }
        for name, listed in CONTROLLERS.items():
            if not self._is_chosen(name):
                continue
            make = partial(listed.make, client, options.get(name, {}), clock=self._clock, cache=cache)
            if listed.first:
                tasks.start_with(listed.first_kinds(), listed.concerns, name, make)
            else:
                tasks.start(name, make)

    def _is_chosen(self, controller: str) -> bool:
        if self._nodes == 0 and controller in _OF_NODES:
            return False
        return self._controllers is None or controller in self._controllers

    async def stop(self) -> None:
        """Stop the server and discard everything."""
        running, self._running = self._running, None
        if running is not None:
            await self._stack.aclose()
            if running.group is not None:
                await asyncio.to_thread(running.group.close)

    @property
    def admin(self) -> User:
        """A member of system:masters."""
        return self._started.admin

    @property
    def version(self) -> str:
        """The version this server behaves like."""
        return VERSION["gitVersion"]

    @property
    def faults(self) -> Faults:
        """Injects failures: see `Faults`."""
        return self._started.assembled.server.faults

    @property
    def nodes(self) -> NodeScript:
        """Lets simulated nodes fail and recover: see `NodeScript`."""
        return self._started.nodes

    @property
    def pods(self) -> PodScript:
        """Changes how simulated pods behave, lets them crash, evicts them: see `PodScript`."""
        return self._started.pods

    @property
    def audit(self) -> AuditLog:
        """Every request that was answered: see `AuditLog`."""
        return self._started.assembled.server.audit

    def add_user(self, name: str, groups: Iterable[str] = ()) -> User:
        """A user with a client certificate of this control plane's authority."""
        return self._started.user(name, groups)

    def client(self, user: User | None = None) -> Client:
        """A client in the same process: no sockets, otherwise the same. As admin, or as another user."""
        user = user or self.admin
        return Client(Config.from_kubeconfig_text(user.kubeconfig), transport=self.transport(user))

    def transport(self, user: User | None = None) -> Transport:
        """How the client of this process sends its requests, for a `Client` with a transport around it."""
        return self._transport(user or self.admin)

    def _transport(self, user: User, *, internal: bool = False) -> InProcessTransport:
        der = load_pem_x509_certificate(user.certificate.encode()).public_bytes(Encoding.DER)
        return InProcessTransport(self._started.assembled.server, der, internal=internal)

    async def kubectl(
        self, *arguments: str, input: str | None = None, kubeconfig: str | None = None, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl against this server."""
        started = self._started
        if started.group is None:
            started.group = await asyncio.to_thread(ProcessGroup)
        config = kubeconfig or self.admin.kubeconfig
        program = find_binaries(controller_manager=False).kubectl
        return await run_kubectl(started.group, program, arguments, kubeconfig=config, stdin=input, check=check)

    def compact(self) -> None:
        """Drop all revisions but the current one: lists and watches from older ones get 410 Expired."""
        store = self._started.assembled.store
        store.compact(store.revision)

    def snapshot(self) -> PlaneSnapshot:
        """All objects as they are now, which nodes have failed, and what is set for pods."""
        started = self._started
        return PlaneSnapshot(started.assembled.store.snapshot(), started.nodes.snapshot(), started.pods.snapshot())

    def reset(self, snapshot: PlaneSnapshot) -> None:
        """Restore all of it as it was at the snapshot. Watchers see the difference as ordinary changes."""
        started = self._started
        started.nodes.restore(snapshot.failed_nodes)
        started.pods.restore(snapshot.pods)
        started.assembled.store.restore(snapshot.objects)

    def observe(self, observer: Callable[[StoreChange], None]) -> Callable[[], None]:
        """Call `observer` with each change, within the step that makes it. Returns an unsubscribe function."""
        return self._started.assembled.store.observe(observer)

    @property
    def _started(self) -> _Running:
        if self._running is None:
            raise ControlPlaneError(
                "the control plane is not running: use it inside `async with`, or call start() first"
            )
        return self._running


class _Running:
    """What exists between start and stop."""

    def __init__(self, assembled: Assembled, authority: CertificateAuthority, url: str, nodes: NodeScript) -> None:
        self.assembled = assembled
        self.nodes, self.pods = nodes, PodScript()
        self.authority = authority
        self.url = url
        self.group: ProcessGroup | None = None
        self.admin = self.user("admin", ("system:masters",))

    def user(self, name: str, groups: Iterable[str]) -> User:
        groups = tuple(groups)
        pair = self.authority.client(name, groups)
        return User(name, groups, self.url, self.authority.certificate, pair.certificate, pair.key)


def _names_of(host: str) -> Iterator[str]:
    """The names by which other machines may reach a server that listens on `host`, besides that."""
    if host in _EVERYWHERE:
        yield socket.gethostname()


def _cannot_listen(host: str, port: int, error: OSError) -> ControlPlaneError:
    # `socket.create_server` adds the address, which the message has already.
    why = (error.strerror or str(error)).partition(" (while")[0]
    hint = "; choose another port, or 0 for any free one" if error.errno == errno.EADDRINUSE else ""
    return ControlPlaneError(f"cannot listen on {host}, port {port}: {why}{hint}")


class _Repeated:
    """A call that is made again and again, by the time of a clock, until it is cancelled."""

    def __init__(self, seconds: float, clock: Clock, call: Callable[[], None]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._call = call
        self._timer = clock.call_later(seconds, self._ring)

    def cancel(self) -> None:
        self._timer.cancel()

    def _ring(self) -> None:
        self._timer = self._clock.call_later(self._seconds, self._ring)
        self._call()


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait((task,))


def _tls(authority: CertificateAuthority, pair: KeyPair) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.certificate)
    context.verify_mode = ssl.CERT_OPTIONAL
    # Whether a certificate has expired, the server finds by its own clock, and answers with 401 as the real one does.
    context.verify_flags |= _NO_CHECK_TIME
    with tempfile.NamedTemporaryFile("w", prefix="kubewright-", suffix=".pem") as pem:
        pem.write(pair.certificate + pair.key)
        pem.flush()
        context.load_cert_chain(Path(pem.name))
    return context
