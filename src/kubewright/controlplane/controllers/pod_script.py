"""What a test makes simulated pods do, beyond what their annotations say.

web = plane.pods.where(labels={"app": "web"})
web.crash(exit_code=137, reason="OOMKilled")
with plane.pods.where(image="web:2").behave(failed_pulls=inf):
    ...                                     # its image can be pulled again when the block ends
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Protocol, Self, TypeAlias, TypedDict, Unpack

from kubewright.api.core.v1 import Pod
from kubewright.api.selectors import Labels, label_matcher
from kubewright.controlplane.controllers.pod_behaviour import Behaviour, BehaviourRule, annotated
from kubewright.controlplane.errors import ControlPlaneError

PodPredicate: TypeAlias = Callable[[Pod], bool]

_EVICTED = "The node was low on resource: memory. "


class BehaviourChanges(TypedDict, total=False):
    """The fields of a `Behaviour` that are to be different."""

    start: float
    ready: float
    run: float | None
    exit_code: int
    reason: str
    crashes: float
    stop: float
    failed_pulls: float
    waiting: str
    message: str


_CHANGEABLE = BehaviourChanges.__optional_keys__


@dataclass(frozen=True, slots=True)
class Ending:
    """How the containers of a pod end now: with a result, or because the pod is evicted."""

    exit_code: int = 0
    reason: str = ""
    eviction: str | None = None
    """The message of an eviction."""


class ScriptedSimulator(Protocol):
    """The pod simulator, as a script needs it."""

    def wake(self, selects: PodPredicate) -> None:
        """Reconcile these pods: their behaviour may be another one."""

    def end(self, selects: PodPredicate, ending: Ending) -> int:
        """Let the containers of these pods end, of those that run and whose node works. Returns their number."""


class PodScript:
    """The behaviour of simulated pods: by a rule, and by what a test has set for pods that it selects.

    The control plane's own is `plane.pods`. On another server, pass one to `PodSimulator`.
    """

    def __init__(self, rule: BehaviourRule = annotated) -> None:
        self._rule = rule
        self._scripted: list[ScriptedBehaviour] = []
        self._simulators: list[ScriptedSimulator] = []

    def where(
        self,
        predicate: PodPredicate | None = None,
        *,
        name: str = "",
        namespace: str = "",
        labels: Labels | None = None,
        image: str = "",
    ) -> SelectedPods:
        """The pods to which all of it applies, whether they are there already or not; all pods without an argument.

        `image` is that of any of their containers.
        """
        if predicate is not None and not callable(predicate):
            raise TypeError(f"where({predicate!r}): expected a function of a Pod; by name it is where(name=...)")
        matches = label_matcher(labels).matches if labels is not None else None

        def selects(pod: Pod) -> bool:
            return (
                name in ("", pod.metadata.name)
                and namespace in ("", pod.metadata.namespace)
                and (matches is None or matches(pod.metadata.labels))
                and (not image or any(one.image == image for one in pod.spec.containers))
                and (predicate is None or predicate(pod))
            )

        return SelectedPods(self, selects)

    def behaviour_of(self, pod: Pod) -> Behaviour:
        """The behaviour of a pod now."""
        behaviour = self._rule(pod)
        for scripted in self._scripted:
            if scripted.selects(pod):
                behaviour = replace(behaviour, **scripted.changes)
        return behaviour

    @contextmanager
    def followed_by(self, simulator: ScriptedSimulator) -> Iterator[None]:
        """For as long as it runs, the simulator hears of changes."""
        self._simulators.append(simulator)
        try:
            yield
        finally:
            self._simulators.remove(simulator)

    def add(self, scripted: ScriptedBehaviour) -> None:
        """What was added last counts most."""
        # In this order: what selects no pod, but fails, is not to stay.
        self._wake(scripted.selects)
        self._scripted.append(scripted)

    def remove(self, scripted: ScriptedBehaviour) -> None:
        """May be called twice."""
        if scripted in self._scripted:
            self._scripted.remove(scripted)
            self._wake(scripted.selects)

    def snapshot(self) -> list[ScriptedBehaviour]:
        """What is set now, for `restore`."""
        return list(self._scripted)

    def restore(self, scripted: Sequence[ScriptedBehaviour]) -> None:
        """Let pods behave as at that moment."""
        before, self._scripted = self._scripted, list(scripted)
        for each in before:
            if each not in self._scripted:
                self._wake(each.selects)
        for each in self._scripted:
            if each not in before:
                self._wake(each.selects)

    def end(self, selects: PodPredicate, ending: Ending) -> None:
        """Let the containers of the pods end that run now. ControlPlaneError when there are none."""
        if not sum([simulator.end(selects, ending) for simulator in self._simulators]):
            raise ControlPlaneError(
                "none of the selected pods runs on a simulated node that works: wait until one is ready"
            )

    def _wake(self, selects: PodPredicate) -> None:
        for simulator in self._simulators:
            simulator.wake(selects)


class ScriptedBehaviour:
    """A change of behaviour, until `end` or the end of its `with` block."""

    def __init__(self, script: PodScript, selects: PodPredicate, changes: BehaviourChanges) -> None:
        self._script = script
        self.selects = selects
        self.changes = changes

    def end(self) -> None:
        """Let the pods behave as before. May be called twice."""
        self._script.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()


class SelectedPods:
    """Some of the simulated pods, and what can be done to them."""

    def __init__(self, script: PodScript, selects: PodPredicate) -> None:
        self._script = script
        self._selects = selects

    def behave(self, **changes: Unpack[BehaviourChanges]) -> ScriptedBehaviour:
        """Change how they behave, those that come later too: see `Behaviour` for what can be given.

        What is not given remains, and of several changes the last one counts. It takes effect at once: with
        `run=0` running containers end, with `failed_pulls=0` a pod that waits for its image starts.

        Raises TypeError for a name and ValueError for a value that no behaviour has.
        """
        unknown = sorted(changes.keys() - _CHANGEABLE)
        if unknown:
            known = ", ".join(sorted(_CHANGEABLE))
            raise TypeError(f"pods have no behaviour {', '.join(unknown)} (there are: {known})")
        Behaviour(**changes)
        scripted = ScriptedBehaviour(self._script, self._selects, changes)
        self._script.add(scripted)
        return scripted

    def crash(self, *, exit_code: int = 1, reason: str = "") -> None:
        """Let their containers end once, now. What follows is up to their restartPolicy.

        ControlPlaneError when none of them runs on a node that works.
        """
        Behaviour(exit_code=exit_code, reason=reason)
        self._script.end(self._selects, Ending(exit_code, reason))

    def evict(self, message: str = _EVICTED) -> None:
        """Evict them now, as a kubelet does when its node is short of memory or disk space: they are Failed.

        For evictions that respect disruption budgets, as `kubectl drain` makes them, there is `client.evict`.
        """
        self._script.end(self._selects, Ending(eviction=message))
