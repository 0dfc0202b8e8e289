"""`JobCommitter`: archives the content volume of a Devbox that is stopped, by a Job.

The archive is on a volume of its own, and there is one Job at a time. It only reads the content: an attempt that fails,
or is given up, leaves that as it was.
"""

from __future__ import annotations

from typing import Final

from kubewright import AlreadyExists, CachedClient, KubernetesError, ObjectKey, ObjectMeta, set_controller_reference
from kubewright.api import Object
from kubewright.api.batch.v1 import Job, JobSpec
from kubewright.api.core.v1 import Container, PersistentVolumeClaim, Pod, PodSpec, PodTemplateSpec, VolumeMount
from kubewright.patterns import get_condition, is_true

from .committer import CommitFailed, CommitProgress, Committed, Committing
from .content import MOUNTED_AT, VOLUME, claim, newest_claim, script_container, volume, whole
from .names import ARCHIVE as ARCHIVE_ROLE
from .names import CONTENT_ID, NAME_LABEL, ROLE, claim_of, commit_of, metadata_of
from .options import Options
from .parts import is_part, is_watched
from .pod import describe
from .resources import ordinary_resources
from .scripts import ARCHIVE, RESTORE
from .types import Devbox

PREFIX: Final = "archive/"
"""References are this and the name of a claim."""

_ARCHIVE, _BASE = "archive", "base"
_ARCHIVE_AT, _BASE_AT = "/devbox-archive", "/devbox-base"
_POLL = 10.0


class JobCommitter:
    """Commits contents to volumes, see `Committer`. Its Jobs and claims are owned by their Devbox."""

    def __init__(self, client: CachedClient, options: Options) -> None:
        self.client = client
        self.options = options

    def reference(self, devbox: Devbox, content_id: str) -> str:
        """See `Committer`."""
        return f"{PREFIX}{claim_of(devbox, content_id, ARCHIVE_ROLE)}"

    def is_commit(self, devbox: Devbox, reference: str) -> bool:
        """See `Committer`. Images may begin like references do."""
        begin, end = self.reference(devbox, "|").split("|")
        is_long_enough = len(reference) > len(begin) + len(end)
        return is_long_enough and reference.startswith(begin) and reference.endswith(end)

    async def is_there(self, devbox: Devbox, reference: str) -> bool:
        """See `Committer`. The server is asked, as the cache may not show it."""
        key = ObjectKey(devbox.metadata.namespace, reference.removeprefix(PREFIX))
        found = await self.client.find(PersistentVolumeClaim, key, consistency="live")
        return found is not None and found.metadata.deletion_timestamp is None

    async def commit(self, devbox: Devbox) -> CommitProgress:
        """See `Committer`: create the Job, or read how far it is."""
        content_id = devbox.status.content_id
        job = await self._find_job(devbox)
        if job is None:
            return await self._begin(devbox)
        if not is_part(devbox, job):
            return CommitFailed(f"the Job {job.metadata.name} is not of this Devbox: delete it")
        if job.metadata.deletion_timestamp is not None or _content_of(job) != content_id:
            await self.cancel(devbox)
            return Committing("the Job of an earlier attempt is ending", after=_POLL)
        if is_true(job, "Complete"):
            return await self._check(devbox)
        for verdict in ("Failed", "FailureTarget"):  # a pod on a lost node keeps a Job from having failed
            if is_true(job, verdict):
                failed = get_condition(job, verdict)
                message = (failed and failed.message) or "no message"
                return CommitFailed(f"the Job {job.metadata.name} failed: {message}")
        waiting = await self._waiting(devbox)
        # Nothing tells about pods, a Job that is hidden from the cache, or that the Devbox does not control any more.
        after = None if is_watched(devbox, job) and not waiting else _POLL
        name = job.metadata.name
        message = f"the Job {name} waits for its pod: {waiting}" if waiting else f"the Job {name} archives the content"
        return Committing(message, after=after)

    async def cancel(self, devbox: Devbox) -> bool:
        """See `Committer`: delete the Job, which is gone when its pods are."""
        job = await self._find_job(devbox)
        if job is None or not is_part(devbox, job):
            return True
        if job.metadata.deletion_timestamp is None:
            await self.client.delete(job, uid=job.metadata.uid, propagation="Foreground", missing_ok=True)
        return False

    def resume(self, devbox: Devbox, pod: PodSpec) -> None:
        """See `Committer`: the image is always that of the spec, and an archive is unpacked before the start."""
        base = devbox.status.record.base_image
        for container in (*pod.init_containers, *pod.containers):
            container.image = devbox.spec.image
        if self.is_commit(devbox, base):
            mounts = [whole(), VolumeMount(name=_ARCHIVE, mount_path=_ARCHIVE_AT, read_only=True)]
            name = f"{devbox.metadata.name}-unpack"
            restore = self._container(devbox, name, RESTORE, MOUNTED_AT, _ARCHIVE_AT, mounts=mounts)
            pod.init_containers = [restore, *pod.init_containers]
            pod.volumes = [*pod.volumes, volume(_ARCHIVE, base.removeprefix(PREFIX))]

    async def discard(self, devbox: Devbox, reference: str) -> None:
        """See `Committer`: delete the claim."""
        name, namespace = reference.removeprefix(PREFIX), devbox.metadata.namespace
        found = await self.client.find(PersistentVolumeClaim, name, namespace=namespace)
        if found is not None and is_part(devbox, found) and found.metadata.labels.get(ROLE) == ARCHIVE_ROLE:
            await self.client.delete(found, uid=found.metadata.uid, missing_ok=True)

    async def latest(self, devbox: Devbox) -> str | None:
        """See `Committer`."""
        found = await newest_claim(self.client.uncached(), devbox, ARCHIVE_ROLE)
        return f"{PREFIX}{found.metadata.name}" if found is not None else None

    async def _find_job(self, devbox: Devbox) -> Job | None:
        """The Job, also one that the cache does not show as it has lost its labels, while there may be an attempt.

        A status that was lost has none: an earlier Job must not be taken for the next attempt.
        """
        key, status = ObjectKey(devbox.metadata.namespace, commit_of(devbox)), devbox.status
        found = await self.client.find(Job, key)
        is_trying = any(each.commit_status in ("Committing", "Failed") for each in status.commit_records.values())
        is_stopping = devbox.spec.state in ("Stopped", "Shutdown") and status.state != devbox.spec.state
        if found is None and (is_trying or is_stopping):
            found = await self.client.find(Job, key, consistency="live")
        return found

    async def _waiting(self, devbox: Devbox) -> str:
        """Why no pod of the Job runs, as long as none does. The cache shows only pods of Devboxes."""
        labels = {NAME_LABEL: commit_of(devbox), CONTENT_ID: devbox.status.content_id}
        pods = await self.client.list(Pod, namespace=devbox.metadata.namespace, labels=labels, consistency="live")
        reasons = [_why_it_waits(pod) for pod in pods]
        return "" if "" in reasons else next(iter(reasons), "there is none yet")

    async def _begin(self, devbox: Devbox) -> CommitProgress:
        content_id, namespace = devbox.status.content_id, devbox.metadata.namespace
        archive = self.reference(devbox, content_id).removeprefix(PREFIX)
        found = await self.client.find(PersistentVolumeClaim, archive, namespace=namespace)
        if found is not None and found.metadata.deletion_timestamp is not None:
            return _deleted(archive)
        try:
            if found is None:
                metadata = metadata_of(devbox, archive, **{ROLE: ARCHIVE_ROLE, CONTENT_ID: content_id})
                await self._create(devbox, claim(devbox, self.options, metadata))
            await self._create(devbox, self._job(devbox, archive))
        except KubernetesError as error:
            if error.is_temporary:
                raise
            return CommitFailed(str(error))
        return Committing(f"the Job {commit_of(devbox)} is created")

    async def _check(self, devbox: Devbox) -> CommitProgress:
        """The Job has succeeded: whether its archive is there, as the server has it, and stays."""
        reference = self.reference(devbox, devbox.status.content_id)
        return Committed() if await self.is_there(devbox, reference) else _deleted(reference.removeprefix(PREFIX))

    async def _create(self, devbox: Devbox, made: Object) -> None:
        set_controller_reference(devbox, made)
        try:
            await self.client.create(made)
        except AlreadyExists:
            # Just created, or hidden from the cache as it lacks our labels.
            found = await self.client.find(made, consistency="live")
            if found is None or not is_part(devbox, found):
                raise

    def _container(
        self, devbox: Devbox, name: str, script: str, *arguments: str, mounts: list[VolumeMount]
    ) -> Container:
        resources = ordinary_resources(devbox, self.options)
        image = self.options.archive_image
        return script_container(name, image, script, *arguments, mounts=mounts, resources=resources)

    def _job(self, devbox: Devbox, archive: str) -> Job:
        base, content_id = devbox.status.record.base_image, devbox.status.content_id
        mounts = [whole(read_only=True), VolumeMount(name=_ARCHIVE, mount_path=_ARCHIVE_AT)]
        volumes = [volume(VOLUME, claim_of(devbox, content_id)), volume(_ARCHIVE, archive)]
        if self.is_commit(devbox, base):
            mounts.append(VolumeMount(name=_BASE, mount_path=_BASE_AT, read_only=True))
            volumes.append(volume(_BASE, base.removeprefix(PREFIX)))
        arguments = (MOUNTED_AT, _ARCHIVE_AT, _BASE_AT)
        pod = PodSpec(
            restart_policy="Never",
            automount_service_account_token=False,
            enable_service_links=False,
            node_selector=devbox.spec.node_selector,
            tolerations=devbox.spec.tolerations,
            containers=[self._container(devbox, "archive", ARCHIVE, *arguments, mounts=mounts)],
            volumes=volumes,
        )
        # Without the labels of Devboxes: Services select pods by them, also those of one that is called like the Job.
        labels = {NAME_LABEL: commit_of(devbox), CONTENT_ID: content_id}
        return Job(
            metadata=metadata_of(devbox, commit_of(devbox), **{CONTENT_ID: content_id}),
            spec=JobSpec(
                backoff_limit=0,
                active_deadline_seconds=int(self.options.commit_timeout.total_seconds()),
                pod_replacement_policy="Failed",
                template=PodTemplateSpec(metadata=ObjectMeta(labels=labels), spec=pod),
            ),
        )


def _content_of(job: Job) -> str | None:
    """The content that a Job archives. Labels of its pods, unlike its own, cannot be changed."""
    return job.spec.template.metadata.labels.get(CONTENT_ID)


def _why_it_waits(pod: Pod) -> str:
    if pod.metadata.deletion_timestamp is not None:
        return f"the one on {pod.spec.node_name or 'no node'} is terminating"
    return describe(pod) if pod.status.phase == "Pending" else ""


def _deleted(archive: str) -> CommitFailed:
    return CommitFailed(f"another client has deleted the volume {archive} that the content is archived to")
