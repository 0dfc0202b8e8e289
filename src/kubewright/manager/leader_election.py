"""Leader election: of several replicas, the one that holds a Lease does the work.

    election = LeaderElection(client, "podmanager")
    await election.run(work)  # acquires the lease, runs work(), renews the lease meanwhile, and releases it

It writes and reads the Lease as client-go does, so Go and Python candidates may compete for one. Guarantees: work never
begins without the lease; when the lease cannot be renewed any more, work is cancelled with time to end before another
candidate can have it, and from then on none of its writes is sent, by any client; a process that was frozen
and has not noticed yet sends none either. Work has ended before the lease is released, which is done as soon as the
server answers. Clocks of different machines are never compared: another's lease has expired when it has not changed for
its duration by our own clock.

Renewals have connections of their own and no rate limit: no request of the program delays them.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import math
import random
import socket
import uuid
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from msgspec import Struct

from kubewright.api.coordination.v1 import Lease, LeaseSpec
from kubewright.api.errors import KubernetesError
from kubewright.api.meta import ObjectMeta
from kubewright.api.time import MicroTime, micro_now
from kubewright.cache.entry import revision_of
from kubewright.client import Client
from kubewright.client.config.in_cluster import SERVICE_ACCOUNT
from kubewright.client.errors import AlreadyExists, APIError, Conflict, NotFound, RequestTimeout
from kubewright.client.write_guard import guard_writes
from kubewright.manager.fence import clock_of, system_clock
from kubewright.manager.permissions import Permission

JITTER = 1.2
"""How much longer than the retry period a pause may be, as client-go has it."""

_RELEASE_PAUSE = 0.25
_MORE_OFTEN = 4

_T = TypeVar("_T")
_log = logging.getLogger(__name__)


class LeadershipLost(Exception):
    """The lease was lost. The work is cancelled; `is_work_over` is whether it has ended.

    When it has not, the process has to exit at once: another one may be leading already.
    """

    def __init__(self, message: str, *, is_work_over: bool = True) -> None:
        super().__init__(message)
        self.is_work_over = is_work_over


class ElectionStatistics(Struct):
    """Counters of an election."""

    acquisitions: int = 0
    renewals: int = 0
    failures: int = 0
    """Attempts that ended with an error instead of a response."""
    slow_paths: int = 0
    """Renewals that had to read the lease first, because it was not as we had left it."""


class LeaderElection:
    """One candidate for one Lease. See the module for what it guarantees.

    `lease_duration` is how long others wait after the last renewal, `renew_deadline` how long a leader tries to
    renew before it stops, `retry_period` the time between renewals; one that fails is tried again four times as often.
    The time between deadline and duration is what the work has to end in.
    """

    def __init__(
        self,
        client: Client,
        name: str,
        *,
        namespace: str | None = None,
        identity: str | None = None,
        lease_duration: float = 15.0,
        renew_deadline: float = 12.0,
        retry_period: float = 2.0,
        labels: Mapping[str, str] | None = None,
        now: Callable[[], MicroTime] = micro_now,
    ) -> None:
        """The lease is in the pod's namespace, or outside a cluster in the client's, unless `namespace` is given.

        `identity` has to be different for each candidate; by default it is the host name and a random part.
        """
        _check(name, identity, lease_duration, renew_deadline, retry_period)
        self.name = name
        self.namespace = namespace or pod_namespace() or client.namespace
        self.identity = identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        self.leader = ""
        """The holder of the lease, as far as we have seen."""
        self.since = 0
        """A cache that shows this revision has all that was written while others led."""
        self.last_error = ""
        """Why the last attempt to read or write the lease failed; empty when it did not."""
        self.statistics = ElectionStatistics()
        self._program = client
        self._client = client  # while it runs, one with its own connections
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._request_timeout = max(1.0, min(renew_deadline / 2, lease_duration / 3))
        self._labels = dict(labels or {})
        self._now = now
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clock = system_clock
        self._is_leading = False
        self._is_working = False
        # All times are the clock's. That of a renewal is when it was sent: no other candidate can have seen it earlier.
        self._renewed_at = 0.0
        self._seen: LeaseSpec | None = None
        self._seen_at = 0.0
        self._lease: Lease | None = None
        # True while the server may have made us the holder without our knowing.
        self._is_unsure = False

    @property
    def needs(self) -> list[Permission]:
        """The permissions that it needs. A role cannot restrict `create` to a name."""
        return [
            Permission("coordination.k8s.io/leases", "create", namespace=self.namespace),
            Permission("coordination.k8s.io/leases", "get", "update", namespace=self.namespace, name=self.name),
        ]

    @property
    def is_leader(self) -> bool:
        """True from acquiring the lease until releasing it, and never when another could have it already."""
        return self._is_leading and self._clock() < self._over_at

    @property
    def hard_deadline(self) -> float | None:
        """When another may take the lease unless we renew it first, by `fence.clock_of` the loop; None while nothing
        leads.
        """
        return self._over_at if self._is_working else None

    def check(self, tolerance: float = 20.0) -> Callable[[], str | None]:
        """A health check that fails when this leads although its lease has run out more than `tolerance` seconds ago.

        `manager.add_health_check("leader-election", election.check())`: the kubelet restarts a pod that can neither
        renew its lease nor end. A standby is healthy. controller-runtime's `leaderelection.NewLeaderHealthzAdaptor`.
        """

        def check() -> str | None:
            late = self._clock() - self._over_at
            if not self._is_working or late <= tolerance:
                return None
            return f"leading, and the lease {self._where} could not be renewed: it ran out {late:.0f} s ago"

        return check

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Wait for the lease, and run `lead` while it is ours. Ends when `lead` does, with its result or error.

        To stop, cancel: `lead` is cancelled, the lease renewed until it has ended, and then released. Raises
        `LeadershipLost` when the lease could not be kept.
        """
        if self._loop is not None:
            raise RuntimeError(f"the election {self._where} runs already")
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        try:
            async with self._program.separate() as self._client:
                await self._acquire()
                await self._hold(lead)
        finally:
            self._is_leading = self._is_working = False
            self._lease = None
            self._loop = None

    async def _acquire(self) -> None:
        _log.debug("waiting for the lease %s as %s", self._where, self.identity)
        try:
            while True:
                # A response that we read too late, because the loop was blocked, does not acquire the lease.
                if await self._attempt() and self._time() < self._renewed_at + self._renew_deadline:
                    break
                await asyncio.sleep(self._retry_period * random.uniform(0.8, JITTER))  # noqa: S311  # not a secret
        except asyncio.CancelledError:
            if self._is_unsure or self._lease is not None:
                await self._release(self._time() + self._request_timeout)
            raise
        self._is_leading = self._is_working = True
        self.statistics.acquisitions += 1
        _log.info("leading: holding the lease %s", self._where)

    async def _hold(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Run the work and the renewals side by side until both have ended, or there is no more time for the work."""
        work = asyncio.create_task(self._guarded(lead), name=f"leader work of {self._where}")
        renewals = asyncio.create_task(self._renew(), name=f"renewals of {self._where}")
        is_cancelled = is_work_cancelled = False
        while not (work.done() and renewals.done()):
            time_left: float | None = None
            if work.done():
                renewals.cancel()
            elif renewals.done():
                time_left = max(0.0, self._over_at - self._time())
                if not is_work_cancelled:
                    work.cancel()
                    is_work_cancelled = True
                elif time_left == 0:
                    break
            try:
                tasks = {task for task in (work, renewals) if not task.done()}
                await asyncio.wait(tasks, timeout=time_left, return_when=asyncio.FIRST_COMPLETED)
            except asyncio.CancelledError:
                is_cancelled = True
                work.cancel()
        # What has ended needs no deadline, and releasing the lease may take longer than that.
        self._is_working = not work.done()
        failure = None if renewals.cancelled() else renewals.exception()
        if failure is None:
            await self._release(self._time() + self._request_timeout)
        elif not work.done():
            raise LeadershipLost(
                f"{failure}; the leader's work was cancelled and has not ended in time: this process has to exit now",
                is_work_over=False,
            ) from failure
        elif self.leader == self.identity:
            await self._release(max(self._over_at, self._time() + self._retry_period))
        error = None if work.cancelled() else work.exception()
        if failure is not None and not is_cancelled:
            raise failure from error
        if error is not None:
            raise error
        if is_cancelled or work.cancelled():
            raise asyncio.CancelledError

    async def _renew(self) -> None:
        """Keep the lease. Only ever ends by `LeadershipLost`."""
        while True:
            # Slow responses do not make renewals rarer: the pause counts from when the last one was sent.
            await asyncio.sleep(self._renewed_at + self._retry_period - self._time())
            try:
                async with asyncio.timeout(self._renewed_at + self._renew_deadline - self._time()):
                    while True:
                        if await self._attempt():
                            break
                        await asyncio.sleep(self._retry_period / _MORE_OFTEN)
            except TimeoutError:
                self._is_leading = False
                raise LeadershipLost(
                    f"the lease {self._where} could not be renewed for {self._renew_deadline:g} s: "
                    f"{self.last_error or 'no response came in time'}"
                ) from None

    async def _guarded(self, lead: Callable[[], Awaitable[None]]) -> None:
        guard_writes(self._check_leading)
        await lead()

    def _check_leading(self) -> None:
        if not self.is_leader:
            raise LeadershipLost(f"not sent, because the lease {self._where} is no longer ours: another may lead")

    async def _attempt(self) -> bool:
        """Take or renew the lease, once. False when another holds it, or when it could not be read or written."""
        try:
            is_ours = await self._take_or_renew()
        except KubernetesError as error:
            self.statistics.failures += 1
            # A lost race is no error, and one that lasts for hours is logged once.
            is_ordinary = isinstance(error, Conflict | AlreadyExists) or str(error) == self.last_error
            level = logging.DEBUG if is_ordinary else logging.WARNING
            self.last_error = str(error)
            _log.log(level, "the lease %s cannot be used, trying again: %s", self._where, error)
            return False
        self.last_error = ""
        return is_ours

    async def _take_or_renew(self) -> bool:
        if self._is_leading and self._lease is not None:
            try:
                await self._write(self._lease)
            except APIError as error:
                _log.debug("reading the lease %s before renewing it: %s", self._where, error)
            else:
                return True
        lease = await self._send(self._client.find(Lease, self.name, namespace=self.namespace))
        self._is_unsure = False
        if lease is None:
            await self._write(None)
            return True
        self._see(lease.spec, self._time())
        if self.leader and self.leader != self.identity:
            if self._is_leading:
                # client-go goes on until its renew deadline. There is nothing to wait for: another candidate leads.
                self._is_leading = False
                raise LeadershipLost(f'the lease {self._where} was taken over by "{self.leader}"')
            if self._time() < self._seen_at + (lease.spec.lease_duration_seconds or 0):
                return False
        if self._is_leading:
            self.statistics.slow_paths += 1
        await self._write(lease)
        return True

    async def _write(self, lease: Lease | None) -> None:
        """Write ourselves as the holder of the lease as it was read, or of a new one. Conflicts are errors."""
        sent_at = self._time()
        self._is_unsure = True
        try:
            if lease is None:
                meta = ObjectMeta(name=self.name, namespace=self.namespace, labels=dict(self._labels))
                spec = self._claim(LeaseSpec(holder_identity=self.identity, lease_transitions=0))
                stored = await self._send(self._client.create(Lease(metadata=meta, spec=spec)))
            else:
                ours = copy.deepcopy(lease)
                ours.metadata.labels |= self._labels
                ours.spec = self._claim(ours.spec)
                stored = await self._send(self._client.update(ours))
        except APIError:
            self._is_unsure = False
            raise
        if not self._is_leading:
            self.since = _end_of_others(lease, stored)
        self._lease = stored
        self._is_unsure = False
        self._renewed_at = sent_at
        self._see(stored.spec, sent_at)
        if self._is_leading:
            self.statistics.renewals += 1

    def _claim(self, spec: LeaseSpec) -> LeaseSpec:
        now = self._now()
        if spec.holder_identity != self.identity:
            spec.lease_transitions = (spec.lease_transitions or 0) + 1
            spec.acquire_time = now
        spec.acquire_time = spec.acquire_time or now
        spec.renew_time = now
        spec.holder_identity = self.identity
        spec.lease_duration_seconds = math.ceil(self._lease_duration)
        return spec

    def _see(self, spec: LeaseSpec, at: float) -> None:
        """Note when the lease was last seen changing: the times in it are by another's clock."""
        if spec != self._seen:
            self._seen, self._seen_at = spec, at
            self.leader = spec.holder_identity or ""

    async def _release(self, until: float) -> None:
        """Release the lease, so that others need not wait until it expires. Best effort."""
        self._is_leading = False
        try:
            async with asyncio.timeout(until - self._time()):
                while True:
                    if await self._try_release():
                        break
                    await asyncio.sleep(_RELEASE_PAUSE)
        except (KubernetesError, TimeoutError) as error:
            _log.warning(
                "the lease %s was not released; other candidates have to wait for up to %g s: %s",
                self._where,
                self._lease_duration,
                str(error) or self.last_error or "no response came in time",
            )

    async def _try_release(self) -> bool:
        """False when it should be retried."""
        try:
            lease = self._lease or await self._client.find(Lease, self.name, namespace=self.namespace)
            if lease is None or lease.spec.holder_identity != self.identity:
                return True
            released = copy.deepcopy(lease)
            released.spec.holder_identity = ""
            released.spec.lease_duration_seconds = 1
            released.spec.acquire_time = released.spec.renew_time = self._now()
            stored = await self._client.update(released)
        except NotFound:
            return True
        except KubernetesError as error:
            if not isinstance(error, Conflict) and not error.is_temporary:
                raise
            if isinstance(error, APIError):
                self._lease = None  # not as we left it: read it first
            return False
        self._see(stored.spec, self._time())
        _log.debug("the lease %s is released", self._where)
        return True

    async def _send(self, request: Awaitable[_T]) -> _T:
        # The client tries again by itself where that is safe; all of that together must not take longer.
        try:
            async with asyncio.timeout(self._request_timeout):
                return await request
        except TimeoutError:
            raise RequestTimeout(f"no response within {self._request_timeout:g} s") from None

    @property
    def _over_at(self) -> float:
        return self._renewed_at + self._lease_duration

    def _time(self) -> float:
        return self._clock()

    @property
    def _where(self) -> str:
        return f"{self.namespace}/{self.name}"


def _end_of_others(found: Lease | None, taken: Lease) -> int:
    """The revision by which all that led before have ended: that of the release, which comes last, or of our claim."""
    if found is None:
        return 0
    return revision_of((taken if found.spec.holder_identity else found).metadata)


def _check(name: str, identity: str | None, lease_duration: float, renew_deadline: float, retry_period: float) -> None:
    if not name:
        raise ValueError("a leader election needs the name of a lease, the same for all replicas")
    if identity == "":
        raise ValueError(f'the identity of a candidate for the lease "{name}" is empty: leave it out, or name it')
    if retry_period <= 0:
        raise ValueError(f"retry_period is {retry_period:g} s: expected more than 0")
    if renew_deadline <= JITTER * retry_period:
        raise ValueError(
            f"renew_deadline is {renew_deadline:g} s: expected more than {JITTER:g} times the retry_period of "
            f"{retry_period:g} s, so that there is time for a second try"
        )
    if lease_duration <= renew_deadline:
        raise ValueError(
            f"lease_duration is {lease_duration:g} s: expected more than the renew_deadline of {renew_deadline:g} s, "
            "so that a leader who cannot renew has time to stop"
        )
    if lease_duration < 1:
        raise ValueError(f"lease_duration is {lease_duration:g} s: expected at least 1, leases count whole seconds")


def pod_namespace() -> str:
    """The namespace of the pod that this runs in; empty outside of a cluster."""
    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return ""
