from __future__ import annotations

import subprocess
import time
from collections.abc import Callable

import pytest

WaitUntil = Callable[[Callable[[], bool]], None]


@pytest.fixture
def wait_until() -> WaitUntil:
    """Returns as soon as the condition holds, fails the test when it does not within 60 s."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "the condition did not become true within 60 s"
            time.sleep(0.01)

    return wait


@pytest.fixture
def is_running() -> Callable[[int], bool]:
    """Whether a process id belongs to a live process; a zombie is not one."""

    def check(pid: int) -> bool:
        state = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout
        return bool(state.strip()) and not state.startswith("Z")

    return check
