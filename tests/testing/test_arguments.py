"""A test that gives a helper the wrong thing gets a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from kubewright.testing import Running, count_requests, run_virtual, settled


async def main() -> int:
    return 1


async def test_only_a_manager_runs_and_settles(running: Running) -> None:
    setup: Any = main
    with pytest.raises(TypeError, match=r"^running\(manager\): expected a manager, not .*Manager\(client\), and call"):
        async with running(setup):
            pass
    client: Any = "client"
    with pytest.raises(
        TypeError, match=r"^settled\(manager\): expected a manager, not 'client': make one with Manager"
    ):
        await settled(client)


def test_only_the_requests_of_a_client_are_counted() -> None:
    client: Any = "client"
    with pytest.raises(TypeError, match=r"^count_requests\('client'\): expected the client"), count_requests(client):
        pass


@pytest.mark.filterwarnings("error")  # a coroutine that is never awaited
def test_virtual_time_runs_a_function() -> None:
    called: Any = main()
    with pytest.raises(TypeError, match=r"give the function without calling it, as in run_virtual\(main\)"):
        run_virtual(called)


@pytest.mark.filterwarnings("error")
async def test_virtual_time_is_a_loop_of_its_own() -> None:
    with pytest.raises(RuntimeError, match=r"^run_virtual\(\) runs a loop of its own: .* or use @virtual"):
        run_virtual(main)
