"""What is deployed, from the setup function of a program: its kinds, its webhooks, and the roles that it needs.

    podmanager = await with_setup(Operator(name="podmanager", image="podmanager:1.0"), setup)

The function is called without a cluster, with the manager that the flags of the Deployment make, and with the options
that its flags and variables make: this process' own environment is not that of the pods.
"""

from __future__ import annotations

import io
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stderr

from msgspec import Struct
from msgspec.structs import replace

from kubewright.api.builtin import MODULES
from kubewright.api.dynamic import Dynamic
from kubewright.api.resources import Object, resource_info
from kubewright.client import Client
from kubewright.controller.watched import Watched
from kubewright.deployment.operator import HEALTH_PORT, METRICS_PORT, WEBHOOK_PORT, Operator
from kubewright.deployment.workload import arguments
from kubewright.manager import Manager, Permission
from kubewright.manager.flags import Flags, parse_flags
from kubewright.manager.options import OptionFlags
from kubewright.manager.program import manager_of
from kubewright.manager.roles import declared_permissions, roles_of
from kubewright.manager.setup import SetupResult
from kubewright.manifest.errors import ManifestError
from kubewright.webhook import versions_of, webhooks_of

_log = logging.getLogger(__name__)


async def with_setup(
    operator: Operator,
    setup: Callable[..., SetupResult],
    *,
    options: type[Struct] | None = None,
    permissions: Iterable[Permission] = (),
    manager: Callable[..., Manager] = Manager,
) -> Operator:
    """The operator with the kinds it reconciles, the webhooks it serves, and the roles and objects it needs besides
    those given; its pods have at least the grace time of its manager. What is not the operator's is given as to `run`.

    Kinds of Kubernetes are not its own, nor are `external` ones. Raises `ManifestError` for arguments that are not
    flags, and `SetupError` when the function requests something of the API server.
    """
    flags, values = _flags(operator, options)
    if ignored := _ignored(operator, options):
        _log.warning("%s", ignored)
    made: list[Manager] = []

    def make(client: Client) -> Manager:
        made.append(manager_of(client, operator.name, flags, permissions, manager))
        return made[0]

    needed = await declared_permissions(setup, *values, manager=make)
    return replace(
        operator,
        kinds=[*dict.fromkeys([*operator.kinds, *_reconciled(made[0])])],
        webhooks=[*webhooks_of(made[0]), *versions_of(made[0])],
        roles=[*operator.roles, *roles_of(operator.name, needed)],
        objects=[*operator.objects, *made[0].required_objects],
        grace=max(operator.grace, made[0].grace or 0),
    )


async def own_permissions(
    operator: Operator, setup: Callable[..., SetupResult], *, options: type[Struct] | None = None
) -> list[Permission]:
    """What the program of an operator needs by itself, without what the flags of its Deployment add: the election, the
    certificates of webhooks, and the protection of metrics.
    """
    flags, values = _flags(operator, options)
    flags.leader_elect, flags.metrics_secure, flags.webhook_service = False, False, None

    def make(client: Client) -> Manager:
        return manager_of(client, operator.name, flags, (), Manager)

    return await declared_permissions(setup, *values, manager=make)


def _flags(operator: Operator, options: type[Struct] | None) -> tuple[Flags, list[Struct]]:
    # The pod knows its namespace by itself.
    here = [f"--lease-namespace={operator.namespace}", f"--webhook-service={operator.webhook_service}"]
    given = [*arguments(operator), *here, *operator.arguments]
    written = io.StringIO()
    try:
        with redirect_stderr(written):
            flags, values = parse_flags(operator.name, options, given, _environment(operator))
    except SystemExit:
        reason = written.getvalue().strip().rpartition("\n")[2]
        ignored = _ignored(operator, options)
        raise ManifestError(
            f"the arguments of the operator {operator.name} cannot be used: {reason}{f'; {ignored}' if ignored else ''}"
        ) from None
    _check_reachable(operator, flags)
    return flags, values


def _check_reachable(operator: Operator, flags: Flags) -> None:
    """Raise `ManifestError` if the program would serve where no probe, Service or NetworkPolicy looks for it."""
    service = operator.webhook_service
    for flag, found, deployed in (
        ("--health-address", flags.health_address, [f":{HEALTH_PORT}"]),
        ("--metrics-address", flags.metrics_address, [f":{METRICS_PORT}", "0"]),
        ("--webhook-address", flags.webhook_address, [f":{WEBHOOK_PORT}"]),
        ("--webhook-service", flags.webhook_service, [str(service), service.name]),
    ):
        if found not in deployed:
            raise ManifestError(
                f"the arguments of the operator {operator.name} cannot be used: {flag}={found}: what is deployed with "
                f"it expects {deployed[0]}"
            )


def _environment(operator: Operator) -> dict[str, str]:
    """The variables of its pods. What comes from elsewhere is not known here: it is as it is in this process."""
    elsewhere = {each.name for each in operator.env if each.value_from is not None}
    return {
        **{name: value for name, value in os.environ.items() if operator.env_from or name in elsewhere},
        **{each.name: each.value or "" for each in operator.env if each.value_from is None},
    }


def _ignored(operator: Operator, options: type[Struct] | None) -> str:
    """A sentence for variables of options that are set in this process, and not for the pods; empty if there are none.

    Values are not shown: variables often hold credentials.
    """
    if options is None:
        return ""
    known = _environment(operator)
    given = {argument.partition("=")[0] for argument in operator.arguments}
    found = [
        option
        for option in OptionFlags(options, operator.name).all
        if os.environ.get(option.variable) and option.variable not in known and option.flag not in given
    ]
    if not found:
        return ""
    names = ", ".join(option.variable for option in found)
    return (
        f"ignored, as it is set in this environment, and not in that of the pods: {names}; give it as a flag "
        f"({found[0].flag}=...), which the Deployment shows, or in a Secret, with env_from (--env-from-secret NAME)"
    )


def _reconciled(manager: Manager) -> Iterator[type[Object]]:
    for controller in manager.controllers:
        for source in controller.sources:
            if isinstance(source, Watched) and source.is_own and source.cache is manager.cache:
                kind: type[Object] = source.kind
                info = resource_info(kind)
                if info.gvk.api_version not in MODULES and not info.external and not issubclass(kind, Dynamic):
                    yield kind
