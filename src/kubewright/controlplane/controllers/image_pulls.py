"""Images that cannot be pulled: ErrImagePull after each attempt, ImagePullBackOff until the next one.

A kubelet tries again after 10 s, 20 s … 300 s. All times are seconds since the node accepted the pod, and everything
follows from them.
"""

from __future__ import annotations

from math import inf

from kubewright.controlplane.controllers.pod_behaviour import Behaviour

_FIRST_BACK_OFF, _MAX_BACK_OFF = 10, 300
_GROWING = 5  # back-offs until it is the maximum
_ROUNDING = 1e-6  # clocks count microseconds
# A kubelet shows the failure until it comes back to the pod, and finds that it has to wait.
_SHOWN = 1.0


def back_off(failures: int) -> int:
    """How long a kubelet waits after so many earlier failures, in seconds."""
    return min(_FIRST_BACK_OFF << min(failures, 10), _MAX_BACK_OFF)


def pulled_after(behaviour: Behaviour) -> float | None:
    """When the images are there; None when they never are."""
    if inf in (behaviour.start, behaviour.failed_pulls):
        return None
    growing = int(min(behaviour.failed_pulls, _GROWING))
    return behaviour.start + sum(map(back_off, range(growing))) + _MAX_BACK_OFF * (behaviour.failed_pulls - growing)


def pull_state(behaviour: Behaviour, image: str, elapsed: float) -> tuple[str, str]:
    """Why a container does not run yet: the reason and the message that it shows."""
    if not behaviour.failed_pulls or elapsed + _ROUNDING < behaviour.start:
        return "ContainerCreating", ""
    error = pull_error(image)
    failed, _ = _last_failure(behaviour, elapsed)
    if elapsed + _ROUNDING < failed + _SHOWN:
        return "ErrImagePull", error
    return "ImagePullBackOff", f'Back-off pulling image "{image}": ErrImagePull: {error}'


def pull_error(image: str) -> str:
    """The error of the container runtime."""
    return f'failed to pull and unpack image "{image}": not found'


def next_pull_change(behaviour: Behaviour, elapsed: float) -> float:
    """When the containers of a pod whose images cannot be pulled next show something else."""
    if elapsed + _ROUNDING < behaviour.start:
        return behaviour.start
    failed, pause = _last_failure(behaviour, elapsed)
    return failed + _SHOWN if elapsed + _ROUNDING < failed + _SHOWN else failed + pause


def _last_failure(behaviour: Behaviour, elapsed: float) -> tuple[float, float]:
    """When the last attempt failed, and how long the pause is after it."""
    failed = behaviour.start
    for failures in range(_GROWING):
        pause = back_off(failures)
        if failed + pause > elapsed + _ROUNDING:
            return failed, pause
        failed += pause
    return failed + (elapsed + _ROUNDING - failed) // _MAX_BACK_OFF * _MAX_BACK_OFF, _MAX_BACK_OFF
