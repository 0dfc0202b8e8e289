"""The objects of an operator's own kinds: counted, and deleted while the operator can still clean up after them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from kubewright.api.admissionregistration.v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.dynamic import Dynamic, PartialObject, metadata_only
from kubewright.api.errors import KubernetesError
from kubewright.api.resources import Object, resource_info
from kubewright.cli.cluster.progress import ChangeProgress
from kubewright.cli.cluster.target import Refused
from kubewright.cli.cluster.waiting import wait_until_none
from kubewright.client import Client
from kubewright.client.errors import NotFound

CONFIGURATIONS: Final = (MutatingWebhookConfiguration, ValidatingWebhookConfiguration)
"""The kinds that have webhooks called."""

_MAX_SHOWN: Final = 3


class StillThere(KubernetesError):
    """Something that was deleted has not gone. The message says what blocks that."""


class CustomObjects(Struct, frozen=True):
    """The objects of one definition."""

    kind: type[Dynamic]
    objects: list[PartialObject]

    def __str__(self) -> str:
        return f"{len(self.objects)} {self.kind.__name__}{'' if len(self.objects) == 1 else 's'}"

    @property
    def deletion(self) -> str:
        """What it is to delete them."""
        return f"delete {self} of {resource_info(self.kind).gvk.group}"

    @property
    def has_finalizers(self) -> bool:
        """Whether anything has to be done before all of them can go."""
        return any(each.metadata.finalizers for each in self.objects)


async def custom_objects(client: Client, definition: CustomResourceDefinition) -> CustomObjects:
    """The objects of a definition, by what the server has now. Raises where no version is served to list them in."""
    spec = definition.spec
    served = [version.name for version in spec.versions if version.served]
    stored = [version.name for version in spec.versions if version.served and version.storage]
    if not served:
        raise KubernetesError(
            f"CustomResourceDefinition {definition.key} serves no version, so that its objects cannot be counted: "
            "serve one, or delete it and all of its objects with kubectl"
        )
    kind = Dynamic.of(
        f"{spec.group}/{(stored or served)[0]}",
        spec.names.kind,
        plural=spec.names.plural,
        namespaced=spec.scope == "Namespaced",
    )
    return CustomObjects(kind, await _listed(client, kind))


async def _listed(client: Client, kind: type[Dynamic]) -> list[PartialObject]:
    """All of them. There are none of a kind that is not served, whose definition may just have gone."""
    try:
        return await client.list(metadata_only(kind))
    except NotFound:
        return []


def is_asked_before_deletions(obj: Object, groups: Collection[str]) -> bool:
    """Whether it has a webhook called that has to agree before objects of these groups are deleted."""
    return isinstance(obj, CONFIGURATIONS) and any(
        not {"DELETE", "*"}.isdisjoint(rule.operations) and not {"*", *groups}.isdisjoint(rule.api_groups)
        for webhook in obj.webhooks
        if webhook.failure_policy != "Ignore"
        for rule in webhook.rules
    )


async def check_none_is_new(client: Client, known: Sequence[CustomObjects], progress: ChangeProgress) -> None:
    """Raise `Refused` when there are others by now: the user has not agreed to lose these."""
    for each in known:
        uids = {obj.metadata.uid for obj in each.objects}
        progress.line.doing(f"look for further objects of the kind {each.kind.__name__}")
        async with progress.deadline.limit(progress.line):
            new = [obj for obj in await _listed(client, each.kind) if obj.metadata.uid not in uids]
        if new:
            raise Refused(
                f"{CustomObjects(each.kind, new)} created meanwhile would be deleted, such as {new[0].key}: see who "
                "does that and run this again, or confirm with --delete-objects"
            )


async def delete_custom_objects(client: Client, found: Sequence[CustomObjects], progress: ChangeProgress) -> None:
    """Delete them, and return when they have gone, finalizers and all. Raises `StillThere` with what holds them."""
    for each in found:
        async with progress.change(each.deletion, is_deletion=True):
            for namespace in sorted({obj.metadata.namespace or "" for obj in each.objects}):
                await client.delete_all(each.kind, namespace=namespace or None)

    left: list[CustomObjects] = []

    async def reasons() -> list[str]:
        nonlocal left
        left = [await _left(client, each) for each in found]
        return [f"{each} to go" for each in left if each.objects]

    if waiting := await wait_until_none(reasons, deadline=progress.deadline, line=progress.line):
        raise StillThere(_held([each for each in left if each.objects], waiting, progress.deadline.timeout))
    for each in found:
        progress.gone(each.deletion)


async def _left(client: Client, deleted: CustomObjects) -> CustomObjects:
    """Those that were deleted and have not gone; not those that were created since."""
    uids = {each.metadata.uid for each in deleted.objects}
    present = await _listed(client, deleted.kind)
    return CustomObjects(deleted.kind, [each for each in present if each.metadata.uid in uids])


def _held(remaining: Sequence[CustomObjects], waiting: Sequence[str], timeout: float) -> str:
    lines = [f"not gone after {timeout:g} s, and nothing else was deleted:"]
    if not remaining:
        return "\n".join([*lines, *(f"  {reason}" for reason in waiting)])
    for each in remaining:
        for obj in each.objects[:_MAX_SHOWN]:
            finalizers = ", ".join(obj.metadata.finalizers) or "none"
            lines.append(f"  {each.kind.__name__} {obj.key}: finalizers {finalizers}")
        if len(each.objects) > _MAX_SHOWN:
            lines.append(f"  and {len(each.objects) - _MAX_SHOWN} more of {each}")
    lines.append(
        "an operator removes its finalizers when it has cleaned up: let it run, see what it logs, and run this again"
    )
    return "\n".join(lines)
