"""Takes a Devbox to the state that is wanted, by a pipeline: secret, network, pod, phase.

The first step that fails ends the pipeline. The status is written once, whatever came of it.
"""

from __future__ import annotations

from kubewright import CachedClient, Recorder, Result
from kubewright.api.core.v1 import Pod, Secret
from kubewright.patterns import NotYet, ObjectReconciler, Pipeline, set_condition, summarize

from .committer import Committer
from .content import add_record, newest_content, volumes
from .context import DevboxContext
from .names import ARCHIVE, CONTENT, FINALIZER
from .network import network
from .options import Options
from .parts import is_controlled, is_part
from .phase import not_ready_reason, phase, phase_of, report
from .pod import pod, read_pod
from .secret import secret
from .types import Devbox
from .words import unique_id

devbox_pipeline = Pipeline[DevboxContext](secret, network, pod, phase, fail_fast=True, ready=None)

_WAIT_FOR_PODS = 60.0
_ORPHAN = "orphan"


class DevboxReconciler(ObjectReconciler[Devbox]):
    """Reconciles Devboxes."""

    finalizer = FINALIZER

    def __init__(self, client: CachedClient, events: Recorder, committer: Committer, options: Options) -> None:
        super().__init__(client)
        self.events = events
        self.committer = committer
        self.options = options

    async def converge(self, devbox: Devbox) -> Result | None:
        """Run the pipeline, and report what there is also when a step failed."""
        context = DevboxContext(devbox, self.client, self.events, self.committer, self.options)
        if await self.initialise(context):
            return Result(requeue=True)  # what is made from now on is called by what is in the status
        if not self.committer.is_commit(devbox, devbox.status.record.base_image):
            devbox.status.record.base_image = devbox.spec.image  # until there is a commit to begin from
        try:
            await devbox_pipeline.run(context)
        except Exception:
            context.pod = await read_pod(context)
            report(context)
            raise
        finally:
            report_readiness(context)
        if context.again is None:
            return None
        return Result(requeue_after=context.again) if context.again > 0 else Result(requeue=True)

    async def cleanup(self, devbox: Devbox) -> None:
        """Wait until nothing uses the content, and remove the commits. The rest goes with the Devbox, as it owns it.

        Of a Devbox whose parts are to stay (`--cascade=orphan`) all of them do.
        """
        if await self.is_orphaning(devbox):
            return
        found = await self.client.find(Pod, devbox.key, consistency="live")  # also one that has lost its labels
        if found is not None and is_part(devbox, found):
            if found.metadata.deletion_timestamp is None:
                await self.client.delete(found, uid=found.metadata.uid, missing_ok=True)
            raise terminating(devbox, found, f"the pod on {found.spec.node_name or 'no node'} is terminating")
        if not await self.committer.cancel(devbox):
            raise terminating(devbox, None, "the commit is ending")
        for record in devbox.status.commit_records.values():
            if record.commit_image:
                await self.committer.discard(devbox, record.commit_image)

    async def is_orphaning(self, devbox: Devbox) -> bool:
        """Whether the parts of a Devbox that is deleted are to stay.

        The garbage collector takes their owner from them first, and then its finalizer from the Devbox.
        """
        if _ORPHAN in devbox.metadata.finalizers:
            return True
        found = await self.client.find(Secret, devbox.key, consistency="live")
        secrets = [found] if found is not None and is_part(devbox, found) else []
        parts = [*secrets, *await volumes(self.client.uncached(), devbox, CONTENT, ARCHIVE)]
        return any(not is_controlled(devbox, each) for each in parts)

    def is_observed(self, devbox: Devbox) -> bool:
        """A generation is observed when its state is reached."""
        return devbox.spec.state == devbox.status.state

    async def initialise(self, context: DevboxContext) -> bool:
        """Decide what the content and the headless Service are called, and return whether that was to be decided.

        A status that was lost is made again from the volumes that there are.
        """
        devbox, status = context.object, context.object.status
        if status.network.unique_id and status.content_id in status.commit_records:
            return False
        status.network.unique_id = status.network.unique_id or unique_id(devbox.key)
        if status.content_id not in status.commit_records:
            add_record(devbox, *await newest_content(context))
        report(context)
        return True


def terminating(devbox: Devbox, pod: Pod | None, message: str) -> NotYet:
    """What a Devbox that is deleted waits for, once its status says so."""
    if devbox.status.content_id in devbox.status.commit_records:
        devbox.status.phase = phase_of(devbox, pod)
    set_condition(devbox, "Ready", False, "Terminating", message)
    return NotYet(message, after=_WAIT_FOR_PODS)


def report_readiness(context: DevboxContext) -> None:
    """Ready is True when all steps succeeded and the state that is wanted is reached."""
    devbox = context.object
    if not devbox_pipeline.is_ready(devbox):
        summarize(devbox, *(each.condition for each in devbox_pipeline.steps))
    elif devbox.status.phase != devbox.spec.state:
        set_condition(devbox, "Ready", False, devbox.status.phase, not_ready_reason(devbox, context.pod))
    else:
        set_condition(devbox, "Ready", True, "Done")
