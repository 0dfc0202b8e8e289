"""`run(setup)`: the main function of an operator.

    def setup(manager: Manager) -> None: ...

    if __name__ == "__main__":
        run(setup, name="podmanager")

It reads the flags every operator has, connects, runs the manager until SIGINT or SIGTERM, and exits: 0 after a clean
stop, 1 with one line on standard error otherwise, JSON where the log is. What the program itself did wrong is told with
its traceback. By hand it is `Client`, `Manager` and `manager.run()`.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

from kubewright.api.errors import KubernetesError
from kubewright.client import Client, Config
from kubewright.manager.group import cause
from kubewright.manager.leader_election import LeaderElection, LeadershipLost
from kubewright.manager.log import configure, last_words, summary
from kubewright.manager.manager import Manager
from kubewright.manager.signals import exit_now, stop_on_signals

if TYPE_CHECKING:
    import argparse

# Objects after which Python looks for garbage: what events and passes leave behind is freed without that, and to look
# after every 700, as it does by default, took a tenth of all CPU.
_GARBAGE = 10_000


def run(setup: Callable[[Manager], None], *, name: str, argv: Sequence[str] | None = None) -> NoReturn:
    """Run an operator until it is told to stop. `name` is that of its lease, its events and its field manager."""
    options = _parser(name).parse_args(argv)
    configure(options.log_format, options.verbosity)
    try:
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            runner.run(_run(setup, name, options))
    except Exception as error:
        _tell(name, cause(error))
        sys.exit(1)
    sys.exit(0)


def _tell(name: str, error: BaseException) -> None:
    """Say why the program ends."""
    is_own_fault = not isinstance(error, LeadershipLost | KubernetesError)
    line = last_words(name, summary(error), error) if is_own_fault else last_words(name, str(error))
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


async def _run(setup: Callable[[Manager], None], name: str, options: argparse.Namespace) -> None:
    config = Config.load(kubeconfig=options.kubeconfig, context=options.context)
    async with Client(config, field_manager=name) as client:
        election = None
        if options.leader_elect:
            election = LeaderElection(client, options.lease_name, namespace=options.lease_namespace)
        manager = Manager(
            client,
            namespaces=options.namespace,
            election=election,
            health_address=options.health_address,
            metrics_address=options.metrics_address,
            debug_address=options.debug_address,
        )
        setup(manager)
        tune_collector(manager)
        async with stop_on_signals(manager.stop):
            try:
                await manager.run()
            except LeadershipLost as lost:
                if not lost.is_work_over:
                    # Here and now, as another may be leading: to end in order is to wait for that work.
                    _tell(name, lost)
                    exit_now()
                raise


def tune_collector(manager: Manager) -> None:
    """Have Python look for garbage less often, and never again at what exists once the caches are complete.

    For a process that does nothing else: it is never undone.
    """
    if 0 < gc.get_threshold()[0] < _GARBAGE:
        gc.set_threshold(_GARBAGE)
    manager.add(_Freezing(manager))


class _Freezing:
    """What exists when everything is watched lives on: the collector need not look at it."""

    needs_leader = False

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    async def run(self) -> None:
        await self._manager.synced()
        gc.collect()  # or the garbage would live on, too
        gc.freeze()


def _new_loop() -> asyncio.AbstractEventLoop:
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop

    return uvloop.new_event_loop()


def _parser(name: str) -> argparse.ArgumentParser:
    # Imported where used: programs that have a main function of their own import this module, too, with its package.
    import argparse

    parser = argparse.ArgumentParser(
        prog=name,
        description=f"Runs the {name} operator until it is told to stop (Ctrl-C or SIGTERM; a second time forces it).",
        epilog=f"example:  {name} --kubeconfig ~/.kube/config --leader-elect -v 1",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="how to reach the cluster (default: as kubectl does)")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig to use")
    parser.add_argument(
        "--namespace",
        action="append",
        type=_name,
        default=[],
        metavar="NAME",
        help="watch only this namespace; may be repeated",
    )
    parser.add_argument("--leader-elect", action="store_true", help="work only while holding a lease, one of several")
    parser.add_argument(
        "--lease-name", type=_name, default=name, metavar="NAME", help="the lease (default: %(default)s)"
    )
    parser.add_argument("--lease-namespace", metavar="NAME", help="where the lease is (default: the pod's namespace)")
    for kind, address in (("health", ":8081"), ("metrics", ":8080"), ("debug", "0")):
        parser.add_argument(
            f"--{kind}-address",
            default=address,
            metavar="ADDRESS",
            help=f'where to serve {kind}, such as :8080 or 127.0.0.1:8080; "0" for nowhere (default: %(default)s)',
        )
    parser.add_argument("--log-format", choices=["console", "json"], help="default: console on a terminal, else json")
    parser.add_argument(
        "-v", "--verbosity", type=_level, default=0, metavar="N", help="0 is info, 1 debug, 4 everything"
    )
    return parser


def _name(value: str) -> str:
    # An empty namespace would mean all of them to the server, which is hardly what an unset variable was meant to say.
    if not value:
        import argparse

        raise argparse.ArgumentTypeError("expected a name, found an empty one")
    return value


def _level(value: str) -> int:
    if not value.isdecimal():
        import argparse

        raise argparse.ArgumentTypeError(f'expected a number from 0 on, found "{value}"')
    return int(value)
