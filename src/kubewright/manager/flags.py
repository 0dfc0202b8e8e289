"""The flags that every operator has, and those that an operator adds."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Literal, NoReturn

from msgspec import Struct

from kubewright.manager.log import configure, exit_line


class Flags(argparse.Namespace):
    """The flags of every operator, parsed."""

    kubeconfig: str | None
    context: str | None
    namespace: list[str]
    leader_elect: bool
    lease_name: str
    lease_namespace: str | None
    health_address: str
    metrics_address: str
    debug_address: str
    metrics_secure: bool
    metrics_cert_dir: str | None
    webhook_address: str
    webhook_cert_dir: str | None
    webhook_client_ca: str | None
    webhook_service: str | None
    webhook_url: str | None
    log_format: Literal["console", "json"] | None
    verbosity: int


def read_flags(name: str, options: type[Struct] | None, argv: Sequence[str] | None) -> tuple[Flags, list[Struct]]:
    """Parse the command line, and configure the log as it says. Exits with 2 when there is something wrong with it.

    Returns the flags, and the operator's own options if it has any.
    """
    flags, own = parse_flags(name, options, argv)
    configure(flags.log_format, flags.verbosity)
    return flags, own


def parse_flags(
    name: str,
    options: type[Struct] | None,
    argv: Sequence[str] | None,
    environment: Mapping[str, str] | None = None,
) -> tuple[Flags, list[Struct]]:
    """The same without configuring the log, and with another environment than that of this process, if one is given."""
    parser = _Parser(name, argv)
    if options is None:
        return parser.parse_args(argv, Flags()), []
    from kubewright.manager.options import OptionError, OptionFlags  # most programs have none

    own = OptionFlags(options, name)
    own.add_to(parser)
    flags = parser.parse_args(argv, Flags())
    try:
        return flags, [own.read(flags, os.environ if environment is None else environment)]
    except OptionError as error:
        parser.error(str(error))


class _Parser(argparse.ArgumentParser):
    """Reports errors with the usage, or as JSON where the log is JSON."""

    def __init__(self, name: str, argv: Sequence[str] | None) -> None:
        super().__init__(
            prog=name,
            description=f"Runs the operator {name} until SIGINT (Ctrl-C) or SIGTERM; a second signal kills it.",
            epilog=f"example:  {name} --kubeconfig ~/.kube/config --leader-elect -v 1",
        )
        self._arguments = list(sys.argv[1:] if argv is None else argv)
        _add_flags(self, name)

    def error(self, message: str) -> NoReturn:
        """See `argparse.ArgumentParser.error`."""
        text = " ".join(self._arguments)
        if "--log-format json" in text or "--log-format=json" in text:
            configure("json")
            self.exit(2, f"{exit_line(self.prog, message)}\n")
        super().error(message)


def _add_flags(parser: argparse.ArgumentParser, name: str) -> None:
    parser.add_argument("--kubeconfig", metavar="FILE", help="how to reach the cluster (default: as kubectl does)")
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig to use")
    parser.add_argument(
        "--namespace",
        action="append",
        type=_name,
        default=[],
        metavar="NAME",
        help="watch only this namespace (may be repeated; default: all)",
    )
    parser.add_argument(
        "--leader-elect", action="store_true", help="run controllers only in the replica that holds a lease"
    )
    parser.add_argument(
        "--lease-name", type=_name, default=name, metavar="NAME", help="the name of the lease (default: %(default)s)"
    )
    parser.add_argument("--lease-namespace", metavar="NAME", help="the namespace of the lease (default: the pod's)")
    for kind, served, address in (
        ("health", "/healthz and /readyz", ":8081"),
        ("metrics", "/metrics", ":8080"),
        ("debug", "/debug", "0"),
        ("webhook", "webhooks, if there are any", ":9443"),
    ):
        parser.add_argument(
            f"--{kind}-address",
            default=address,
            metavar="ADDRESS",
            help=f'where to serve {served}, such as :8080 or 127.0.0.1:8080; "0" disables it (default: %(default)s)',
        )
    parser.add_argument(
        "--metrics-secure",
        action="store_true",
        help="serve /metrics over TLS, and only to tokens whose role permits it",
    )
    parser.add_argument(
        "--metrics-cert-dir",
        metavar="DIR",
        help="the directory with tls.crt and tls.key for --metrics-secure (default: a self-signed certificate)",
    )
    parser.add_argument(
        "--webhook-cert-dir",
        metavar="DIR",
        help="the directory with tls.crt and tls.key for webhooks (default: k8s-webhook-server/serving-certs in the "
        "directory for temporary files)",
    )
    parser.add_argument(
        "--webhook-client-ca",
        metavar="FILE",
        help="serve webhooks only to clients with a certificate of the authorities in this file",
    )
    parser.add_argument(
        "--webhook-service",
        metavar="NAME",
        help="the Service by which the API server reaches webhooks, NAME or NAMESPACE/NAME: without --webhook-cert-dir "
        "their certificates are made, kept in the Secret NAME-cert, and rotated",
    )
    parser.add_argument(
        "--webhook-url",
        metavar="URL",
        help="while developing: have the API server call webhooks of this program at a URL, such as "
        "https://127.0.0.1:9443, for as long as it runs; it must be reachable from the API server",
    )
    parser.add_argument(
        "--log-format",
        choices=["console", "json"],
        help="the format of the log (default: console on a terminal, else json)",
    )
    parser.add_argument(
        "-v",
        "--verbosity",
        type=_level,
        default=0,
        metavar="N",
        help="0 logs info, 1 adds debug, 4 adds the debug level of all libraries (default: 0)",
    )


def _name(value: str) -> str:
    # The server takes an empty namespace for all of them, which an unset variable hardly meant.
    if not value:
        raise argparse.ArgumentTypeError("expected a name, found an empty one")
    return value


def _level(value: str) -> int:
    if not value.isdecimal():
        raise argparse.ArgumentTypeError(f'expected a number from 0 on, found "{value}"')
    return int(value)
