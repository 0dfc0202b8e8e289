"""Whether what was applied is in effect, and if not, why not.

Definitions are served, all replicas of Deployments are ready and of the present version, and the operator has put its
certificate into what makes the API server call it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from typing import Final

from kubewright.api.admissionregistration.v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.apps.v1 import Deployment
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.certificates.registrations import entries_of
from kubewright.cli.cluster.diagnosis import events_of, pods_of
from kubewright.cli.cluster.plan import described
from kubewright.cli.cluster.status_line import StatusLine
from kubewright.cli.cluster.waiting import Deadline, wait_until_none
from kubewright.client import Client

_REPORT_SECONDS: Final = 5.0


class NotReady(KubernetesError):
    """What was applied has not come into effect. The message has the reasons."""


class _Hopeless(NotReady):
    """It will not come into effect either."""


async def wait_until_ready(
    client: Client, objects: Sequence[Object], service: ObjectKey | None, *, deadline: Deadline, line: StatusLine
) -> None:
    """Return when everything is in effect. Raises `NotReady` with what is not, and what pods and events say of it.

    Webhooks are those of the Service; without one, their certificates are not waited for.
    """

    async def reasons() -> list[str]:
        return [each async for each in _reasons(client, objects, service)]

    try:
        left = await wait_until_none(reasons, deadline=deadline, line=line)
    except _Hopeless as error:
        raise NotReady(await _report(client, [str(error)], objects)) from None
    if left:
        raise NotReady(await _report(client, [f"not ready after {deadline.timeout:g} s", *left], objects))


async def _reasons(client: Client, objects: Iterable[Object], service: ObjectKey | None) -> AsyncIterator[str]:
    for obj in objects:
        match obj:
            case CustomResourceDefinition():
                reason = _of_definition(await client.get(obj), service)
            case Deployment():
                reason = _of_deployment(await client.get(obj))
                if reason:
                    pods = [line async for line in pods_of(client, obj)]
                    reason += f" ({pods[0]})" if pods else ""
            case MutatingWebhookConfiguration() | ValidatingWebhookConfiguration():
                reason = _without_certificate(await client.get(obj), service)
            case _:
                continue
        if reason:
            yield f"{described(obj)}: {reason}"


def _of_definition(definition: CustomResourceDefinition, service: ObjectKey | None) -> str:
    conditions = {each.type: each for each in definition.status.conditions}
    names = conditions.get("NamesAccepted")
    if names is not None and names.status == "False":
        raise _Hopeless(f"{described(definition)} is not served: {names.message}")
    established = conditions.get("Established")
    if established is None or established.status != "True":
        return "it is not served yet"
    return _without_certificate(definition, service)


def _without_certificate(obj: Object, service: ObjectKey | None) -> str:
    entries = entries_of(obj, service) if service is not None else []
    lacking = any(not each.client_config.ca_bundle for each in entries)
    return "the operator has not put its certificate there yet" if lacking else ""


def _of_deployment(deployment: Deployment) -> str:
    """As `kubectl rollout status` has it."""
    status, wanted = deployment.status, deployment.spec.replicas
    if (status.observed_generation or 0) < (deployment.metadata.generation or 0):
        return "its roll-out has not begun"
    for each in status.conditions:
        if (each.type, each.reason) == ("Progressing", "ProgressDeadlineExceeded"):
            raise _Hopeless(f"{described(deployment)}: {each.message}")
    updated, available = status.updated_replicas or 0, status.available_replicas or 0
    if wanted is not None and updated < wanted:
        return f"{updated} of {wanted} replicas are of the present version"
    if (replicas := status.replicas or 0) > updated:
        return f"{replicas - updated} of {replicas} replicas are of an older version"
    return f"{available} of {updated} replicas are ready" if available < updated else ""


async def _report(client: Client, lines: list[str], objects: Iterable[Object]) -> str:
    # The server may be what is not there.
    with suppress(KubernetesError, TimeoutError):
        async with asyncio.timeout(_REPORT_SECONDS):
            for obj in objects:
                if isinstance(obj, Deployment):
                    lines += [f"  {line}" async for line in pods_of(client, obj)]
                    lines += [f"  {line}" async for line in events_of(client, obj)]
    return "\n".join(f"  {line}" if index else line for index, line in enumerate(lines))
