"""`run(setup)`: the main function of an operator.

    def setup(manager: Manager) -> None: ...

    if __name__ == "__main__":
        run(setup, name="podmanager")

It reads the flags every operator has, and the operator's own (`options=`), connects, runs the manager until SIGINT or
SIGTERM, and exits: 0 after a clean stop, 1 with one line on standard error otherwise, JSON where the log is. An error
of the program itself is shown with its traceback. Without it, use `Client`, `Manager` and `manager.run()`.
"""

from __future__ import annotations

import asyncio
import gc
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar, overload

from msgspec import Struct

from kubewright.api.errors import KubernetesError, explain_misuse, explained
from kubewright.client import Client, Config
from kubewright.manager.group import cause
from kubewright.manager.leader_election import LeaderElection, LeadershipLost
from kubewright.manager.log import capture_stray_output, exit_line, summary
from kubewright.manager.manager import Manager
from kubewright.manager.permissions import Permission
from kubewright.manager.setup import SetupResult, check_setup, set_up
from kubewright.manager.signals import exit_now, stop_on_signals

if TYPE_CHECKING:
    from kubewright.manager.flags import Flags

Options = TypeVar("Options", bound=Struct)

# Objects after which Python collects garbage: what events and reconciles leave behind is freed without that, and to
# collect after every 700, as it does by default, took a tenth of all CPU.
_GARBAGE = 10_000

_NAME = r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?"


@overload
def run(
    setup: Callable[[Manager], SetupResult],
    *,
    name: str,
    permissions: Iterable[Permission] = (),
    manager: Callable[..., Manager] = Manager,
    argv: Sequence[str] | None = None,
) -> NoReturn: ...


@overload
def run(
    setup: Callable[[Manager, Options], SetupResult],
    *,
    name: str,
    options: type[Options],
    permissions: Iterable[Permission] = (),
    manager: Callable[..., Manager] = Manager,
    argv: Sequence[str] | None = None,
) -> NoReturn: ...


@explained
def run(
    setup: Callable[..., SetupResult],
    *,
    name: str,
    options: type[Struct] | None = None,
    permissions: Iterable[Permission] = (),
    manager: Callable[..., Manager] = Manager,
    argv: Sequence[str] | None = None,
) -> NoReturn:
    """Run an operator until SIGINT or SIGTERM. `name` is that of its lease, its events and its field manager.

    `setup` is called with the manager, and with the values of `options`, whose fields become flags and environment
    variables (see `kubewright.manager.options`). It may be a `def`, an `async def`, or an async context manager, which
    is left when everything has ended (see `kubewright.manager.setup`). `permissions` are needed besides what
    the setup function shows and requires (`Manager.needs`). `manager` makes the manager, with what flags do not decide:
    `manager=partial(Manager, controllers=ControllerDefaults(workers=4), cache={Pod: CacheOptions(...)})`.
    """
    check_setup(setup, has_options=options is not None)
    maker: object = manager
    if isinstance(maker, Manager) or not callable(maker):
        raise TypeError("run(manager=...) makes the manager itself: write manager=partial(Manager, controllers=...)")
    if isinstance(argv, str):
        raise TypeError(f'run(argv="{argv}"): expected a list of arguments, such as ["--leader-elect"]')
    if _is_in_loop():
        raise RuntimeError(
            "run() starts an event loop of its own and does not return: call it outside of async functions, or use "
            "Client, Manager and await manager.run()"
        )
    if not re.fullmatch(_NAME, str(name)):
        raise ValueError(f'run(name={name!r}): expected lower-case letters, digits and "-", such as "podmanager"')
    # Imported where used: programs that have a main function of their own import this module, too, with its package.
    from kubewright.manager.flags import read_flags

    flags, values = read_flags(name, options, argv)
    capture_stray_output()
    try:
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(_run(setup, name, flags, values, permissions, manager))
    except Exception as error:
        _report(name, cause(error))
        sys.exit(1)
    sys.exit(0)


def _report(name: str, error: BaseException) -> None:
    """Report why the program ends."""
    explain_misuse(error)
    is_own_fault = not isinstance(error, LeadershipLost | KubernetesError)
    line = exit_line(name, summary(error), error) if is_own_fault else exit_line(name, str(error))
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


async def _run(
    setup: Callable[..., SetupResult],
    name: str,
    flags: Flags,
    options: list[Struct],
    permissions: Iterable[Permission],
    make: Callable[..., Manager],
) -> None:
    config = Config.load(kubeconfig=flags.kubeconfig, context=flags.context)
    async with Client(config, field_manager=name) as client:
        manager = manager_of(client, name, flags, permissions, make)
        main, setting_up = asyncio.current_task(), True

        def stop() -> None:
            manager.stop()
            if setting_up and main is not None:
                main.cancel()

        async with stop_on_signals(stop):
            try:
                try:
                    await set_up(setup, manager, *options)
                except asyncio.CancelledError:
                    if manager.is_stopping:
                        return
                    raise
                setting_up = False
                tune_collector(manager)
                await manager.run()
            except LeadershipLost as lost:
                if not lost.is_work_over:
                    # Here and now, as another may be leading: to end in order is to wait for that work.
                    _report(name, lost)
                    exit_now()
                raise
            finally:
                await manager.aclose()


def manager_of(
    client: Client, name: str, flags: Flags, permissions: Iterable[Permission], make: Callable[..., Manager]
) -> Manager:
    """The manager that a program with these flags has."""
    if permissions:
        make = partial(make, permissions=permissions)
    if flags.namespace:
        make = partial(make, namespaces=flags.namespace)
    if flags.leader_elect:
        make = partial(make, election=LeaderElection(client, flags.lease_name, namespace=flags.lease_namespace))
    return make(
        client,
        name=name,
        health_address=flags.health_address,
        metrics_address=flags.metrics_address,
        debug_address=flags.debug_address,
        metrics_secure=flags.metrics_secure,
        metrics_cert_dir=flags.metrics_cert_dir,
        webhook_address=flags.webhook_address,
        webhook_cert_dir=flags.webhook_cert_dir,
        webhook_client_ca=flags.webhook_client_ca,
        webhook_service=flags.webhook_service,
        webhook_url=flags.webhook_url,
    )


def tune_collector(manager: Manager) -> None:
    """Make Python collect garbage less often, and exempt what exists once the caches are complete.

    For a process of its own: it is never undone.
    """
    if 0 < gc.get_threshold()[0] < _GARBAGE:
        gc.set_threshold(_GARBAGE)
    manager.add(_Freezing(manager))


class _Freezing:
    """Freezes what exists when everything is watched: it lives on, and the collector need not visit it again."""

    needs_leader = False

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    async def run(self) -> None:
        await self._manager.synced()
        gc.collect()  # or the garbage would live on, too
        gc.freeze()


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _new_loop() -> asyncio.AbstractEventLoop:
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()
