"""The volumes with the contents of a Devbox: one claim for each content id.

A volume is removed only when the status says that its content is committed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias
from uuid import uuid4

from kubewright import Client, ObjectMeta, Quantity, now, set_controller_reference
from kubewright.api import Object
from kubewright.api.core.v1 import (
    Container,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimVolumeSource,
    Pod,
    ResourceRequirements,
    SecurityContext,
    Volume,
    VolumeMount,
    VolumeResourceRequirements,
)
from kubewright.patterns import NotYet

from .context import DevboxContext
from .names import ARCHIVE, BASE_IMAGE, CONTENT, CONTENT_ID, ROLE, claim_of, labels_of, metadata_of
from .options import Options
from .parts import adopt, find_part, find_stored, is_part
from .scripts import SEED
from .types import CommitRecord, Devbox

VOLUME: Final = "content"
PROJECT: Final = "project"
MOUNTED_AT: Final = "/devbox-content"
"""Where containers that fill or archive the volume see all of it."""

Presence: TypeAlias = Literal["present", "absent", "going"]


def claim(devbox: Devbox, options: Options, metadata: ObjectMeta) -> PersistentVolumeClaim:
    """A claim of the size that the content of a Devbox may grow to."""
    size = devbox.spec.storage_limit or Quantity(options.storage_size)
    return PersistentVolumeClaim(
        metadata=metadata,
        spec=PersistentVolumeClaimSpec(
            access_modes=["ReadWriteOnce"],
            resources=VolumeResourceRequirements(requests={"storage": size}),
            storage_class_name=options.storage_class or None,
        ),
    )


def volume(name: str, claim_name: str) -> Volume:
    """A volume of a pod."""
    source = PersistentVolumeClaimVolumeSource(claim_name=claim_name)
    return Volume(name=name, persistent_volume_claim=source)


def whole(*, read_only: bool | None = None) -> VolumeMount:
    """The mount of the whole volume, for containers that fill or archive it."""
    return VolumeMount(name=VOLUME, mount_path=MOUNTED_AT, read_only=read_only)


def script_container(
    name: str,
    image: str,
    script: str,
    *arguments: str,
    mounts: list[VolumeMount],
    resources: ResourceRequirements,
) -> Container:
    """A container that runs a script as root: files of all users are to keep their owners."""
    return Container(
        name=name,
        image=image,
        command=["sh", "-c", script, name, *arguments],
        resources=resources,
        volume_mounts=mounts,
        security_context=SecurityContext(run_as_user=0, run_as_non_root=False, allow_privilege_escalation=False),
    )


def seeding(devbox: Devbox, image: str, resources: ResourceRequirements) -> Container:
    """The container that fills an empty content volume from the image."""
    arguments = (MOUNTED_AT, devbox.spec.config.working_dir)
    name = f"{devbox.metadata.name}-seed"
    return script_container(name, image, SEED, *arguments, mounts=[whole()], resources=resources)


async def ensure_content(context: DevboxContext) -> None:
    """Claim the volume of the present content, unless it is there; wait for one that is being deleted to go.

    A content that is whole begins from nothing any more: it needs no commit that another client has deleted.
    """
    devbox = context.object
    record, content_id = devbox.status.record, devbox.status.content_id
    name = claim_of(devbox, content_id)
    if (found := await find_part(context, PersistentVolumeClaim, name)) is not None:
        if found.metadata.deletion_timestamp is not None:
            raise NotYet(f"the volume {name} is being deleted")
        if record.start_time is not None:
            await forget_lost_base(context)
        return
    if await find_content(context):
        await ensure_content(context)
        return
    metadata = metadata_of(devbox, name, **{ROLE: CONTENT, CONTENT_ID: content_id})
    metadata.annotations[BASE_IMAGE] = record.base_image
    made = claim(devbox, context.options, metadata)
    set_controller_reference(devbox, made)
    await context.client.create(made)
    if record.schedule_time is not None:
        report_loss(context)


def report_loss(context: DevboxContext, base: str | None = None) -> None:
    """Another client has deleted the volume of a content that was in use."""
    record = context.object.status.record
    base = base or record.base_image
    note = f"The volume of the content {context.object.status.content_id} is gone: it begins from {base}"
    context.events.warning(context.object, "ContentLost", note)
    record.node, record.schedule_time, record.start_time = "", None, None


async def find_content(context: DevboxContext) -> bool:
    """Whether there is another content than the present one, of which there is no volume, nor what it began from.

    The status is that of an earlier time then, as when a client of an older version has applied an object that it had
    read before, with the annotation that has the rest. It goes on with the newest content.
    """
    devbox, record = context.object, context.object.status.record
    committer, was, base = context.committer, devbox.status.content_id, record.base_image
    if committer.is_commit(devbox, base) and await committer.is_there(devbox, base):
        return False  # it is discarded when the next content begins
    newest, content_id = await newest_content(context)
    if content_id is None and newest in (base, devbox.spec.image):
        return False
    was_used = record.schedule_time is not None
    if was_used and content_id is None and newest == committer.reference(devbox, was):
        report_loss(context, newest)  # an attempt to commit it may have got so far
    else:
        note = f"The status was an earlier one, of the content {was}: the Devbox goes on with what is there of a later"
        context.events.warning(devbox, "StatusOutdated", note)
    add_record(devbox, newest, content_id)
    context.reconcile_after(0)
    return True


async def check_content(context: DevboxContext) -> None:
    """Find another content if there is no volume of the present one: the status is to name what there is."""
    if await is_gone(context):
        await find_content(context)


async def is_gone(context: DevboxContext) -> bool:
    """Whether there is no volume of the present content. The server is asked only if the cache shows none."""
    return await cached_claim(context) is None and await stored_claim(context) is None


async def newest_content(context: DevboxContext) -> tuple[str, str | None]:
    """What the newest content begins from, and its id if it has a volume, by what the server has."""
    devbox = context.object
    found = await newest_claim(context.live, devbox, CONTENT)
    if found is not None and not _is_committed(devbox, found):
        return found.metadata.annotations.get(BASE_IMAGE) or devbox.spec.image, found.metadata.labels.get(CONTENT_ID)
    return await context.committer.latest(devbox) or devbox.spec.image, None


def add_record(devbox: Devbox, base_image: str, content_id: str | None = None) -> None:
    """Have a new content, or one that was found, be the present one."""
    content_id = content_id or str(uuid4())
    devbox.status.commit_records[content_id] = CommitRecord(base_image=base_image, generate_time=now())
    devbox.status.content_id = content_id


async def forget_lost_base(context: DevboxContext) -> None:
    """Have the present content begin from the image if another client has deleted the commit that it began from."""
    devbox, record = context.object, context.object.status.record
    base = record.base_image
    if context.committer.is_commit(devbox, base) and not await context.committer.is_there(devbox, base):
        note = f"The commit {base} is gone: of the content {devbox.status.content_id} there is what its volume has"
        context.events.warning(devbox, "CommitLost", note)
        record.base_image = devbox.spec.image
        context.reconcile_after(0)  # a pod that waits for it is replaced


async def presence(context: DevboxContext) -> Presence:
    """Whether there is a volume with the present content, as the server has it.

    A claim that is not bound has none, unless its volume will be made from a snapshot, as backups restore it.
    """
    found = await stored_claim(context)
    if found is None:
        return "absent"
    if found.metadata.deletion_timestamp is not None:
        return "going"
    if found.spec.volume_name or found.spec.data_source or found.spec.data_source_ref:
        return "present"
    await context.client.delete(found, uid=found.metadata.uid, missing_ok=True)
    return "going"


async def pods_using_content(context: DevboxContext) -> list[str]:
    """The pods that use the volume of the present content, whoever's they are, as the server has them."""
    devbox = context.object
    name = claim_of(devbox, devbox.status.content_id)
    pods = await context.live.list(Pod, namespace=devbox.metadata.namespace)
    return [
        pod.metadata.name
        for pod in pods
        if pod.status.phase not in ("Failed", "Succeeded")
        and any(
            each.persistent_volume_claim and each.persistent_volume_claim.claim_name == name
            for each in pod.spec.volumes
        )
    ]


async def stored_claim(context: DevboxContext) -> PersistentVolumeClaim | None:
    """The claim for the present content, as the server has it. One that is not known any more is not gone."""
    devbox = context.object
    return await find_stored(context, PersistentVolumeClaim, claim_of(devbox, devbox.status.content_id))


async def cached_claim(context: DevboxContext) -> PersistentVolumeClaim | None:
    """The claim for the present content, as far as the cache shows."""
    devbox = context.object
    name = claim_of(devbox, devbox.status.content_id)
    return await context.client.find(PersistentVolumeClaim, name, namespace=devbox.metadata.namespace)


async def sync_volumes(context: DevboxContext) -> None:
    """Delete the volumes of contents that are committed, and have the Devbox control the others."""
    devbox = context.object
    labels = {**labels_of(devbox.metadata.name), ROLE: [CONTENT, ARCHIVE]}
    claims = await context.client.list(PersistentVolumeClaim, namespace=devbox.metadata.namespace, labels=labels)
    for found in claims:
        if is_volume(devbox, found) and found.metadata.deletion_timestamp is None:
            if _is_committed(devbox, found):
                await context.client.delete(found, uid=found.metadata.uid, missing_ok=True)
                context.events.normal(devbox, "Released", f"Released the volume {found.metadata.name}: it is committed")
            else:
                await adopt(context, found)


def is_volume(devbox: Devbox, found: PersistentVolumeClaim) -> bool:
    """Whether it is what its labels say, and not a copy that somebody has made of such a volume, labels and all."""
    labels = found.metadata.labels
    name = claim_of(devbox, labels.get(CONTENT_ID, ""), labels.get(ROLE, ""))
    return found.metadata.name == name and is_part(devbox, found)


def _is_committed(devbox: Devbox, found: PersistentVolumeClaim) -> bool:
    labels = found.metadata.labels
    record = devbox.status.commit_records.get(labels.get(CONTENT_ID, ""))
    return labels[ROLE] == CONTENT and record is not None and record.commit_status == "Success"


async def volumes(live: Client, devbox: Devbox, *roles: str) -> list[PersistentVolumeClaim]:
    """The claims of these roles, as the server has them."""
    labels, namespace = {**labels_of(devbox.metadata.name), ROLE: roles}, devbox.metadata.namespace
    claims = await live.list(PersistentVolumeClaim, namespace=namespace, labels=labels)
    return [each for each in claims if is_volume(devbox, each)]


async def newest_claim(live: Client, devbox: Devbox, role: str) -> PersistentVolumeClaim | None:
    """The claim of that role that was made last and is not being deleted.

    A cache that is behind would have a Devbox whose status was lost begin without its content.
    """
    there = [each for each in await volumes(live, devbox, role) if each.metadata.deletion_timestamp is None]
    return max(there, key=_created, default=None)


def _created(obj: Object) -> datetime:
    return obj.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC)
