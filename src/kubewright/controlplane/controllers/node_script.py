"""What a test makes simulated nodes do.

plane.nodes.fail("node-1")
...
plane.nodes.recover("node-1")
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.errors import ControlPlaneError


class NodeScript:
    """Which simulated nodes have failed.

    The control plane's own is `plane.nodes`. On another server, pass one to `SimulatedNodes` and to `PodSimulator`.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._names: set[str] = set()
        self._failed: dict[str, datetime] = {}
        self._subscribers: list[Callable[[str], None]] = []

    def fail(self, name: str) -> None:
        """Let a node fail, as if it had lost its power or its network: its kubelet sends nothing any more.

        Its pods stay as they are, also those that are deleted. After 50 seconds the node is Ready=Unknown and
        unreachable, and its pods are not ready; those that do not tolerate it for longer are evicted after 300 seconds
        more, but only while another node is ready.
        """
        self._require(name)
        if name not in self._failed:
            self._failed[name] = self._clock.now()
            self._notify(name)

    def recover(self, name: str) -> None:
        """Let a node that has failed work again: it is ready at once, and its pods continue. A deleted one is back."""
        self._require(name)
        if self._failed.pop(name, None) is not None:
            self._notify(name)

    def failed_at(self, name: str) -> datetime | None:
        """When the node failed; None while it works."""
        return self._failed.get(name)

    def snapshot(self) -> dict[str, datetime]:
        """Which nodes have failed by now, and when, for `restore`."""
        return dict(self._failed)

    def restore(self, failed: Mapping[str, datetime]) -> None:
        """Let the nodes work and fail as at that moment."""
        changed = self._failed.keys() ^ failed.keys()
        self._failed = dict(failed)
        for name in sorted(changed):
            self._notify(name)

    def register(self, name: str) -> None:
        """A node that can fail; `SimulatedNodes` calls it."""
        self._names.add(name)

    def subscribe(self, changed: Callable[[str], None]) -> Callable[[], None]:
        """Call `changed` with the name of each node that fails or recovers. Returns an unsubscribe function."""
        self._subscribers.append(changed)
        return lambda: self._subscribers.remove(changed)

    def _require(self, name: str) -> None:
        if name not in self._names:
            there_are = ", ".join(sorted(self._names)) or "none"
            raise ControlPlaneError(f'there is no simulated node "{name}" (there are: {there_are})')

    def _notify(self, name: str) -> None:
        for changed in list(self._subscribers):
            changed(name)
