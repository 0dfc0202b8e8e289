"""Commits: progress, failures, retries, and what becomes of the content. In virtual time."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from math import inf

from operators.devbox import Devbox, InMemoryCommitter, InMemoryRegistry, Options
from operators.devbox.commit import MAX_RECORDS, discard_commits
from operators.devbox.content import volume
from operators.devbox.context import DevboxContext
from operators.devbox.names import MAX_NAME_LENGTH
from operators.devbox.tests.disks import followed
from operators.devbox.tests.world import COMMITS, LONG, World, devbox, running_world
from operators.devbox.types import CommitRecord, State

from kubewright import ObjectMeta, Quantity, now
from kubewright.api.admissionregistration.v1 import (
    MatchResources,
    NamedRuleWithOperations,
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
    ValidatingAdmissionPolicyBindingSpec,
    ValidatingAdmissionPolicySpec,
    Validation,
)
from kubewright.api.batch.v1 import Job, JobSpec
from kubewright.api.core.v1 import (
    Container,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    PodTemplateSpec,
    ResourceQuota,
    ResourceQuotaSpec,
    Service,
)
from kubewright.api.markers import JSONObject
from kubewright.client import MergePatch
from kubewright.client.wait import Field, condition, deleted
from kubewright.patterns import get_condition, is_true
from kubewright.testing import RecordedEvents, settled, virtual

FAILED = Field("status.conditions").satisfies(lambda conditions: "CommitFailed" in str(conditions), "report a failure")


STATES: list[State] = ["Running", "Stopped", "Shutdown"]


async def failed(world: World) -> Devbox:
    found = await world.admin.wait_for(Devbox, "it", FAILED, timeout=LONG)
    assert found is not None
    return found


@virtual
async def test_a_commit_that_fails_leaves_the_content_says_so_and_is_tried_again() -> None:
    async with running_world() as world:
        with followed(world.plane) as disks:
            await world.run()
            disks.work()
            commits = world.plane.pods.where(labels=COMMITS).behave(run=1, exit_code=2)
            await world.set_state("Stopped")
            found = await failed(world)
            record = found.status.record
            assert (found.status.phase, record.commit_status, record.attempts) == ("Stopping", "Failed", 1)
            assert record.message.startswith("the Job it-commit failed: ")
            assert record.message.endswith("; the content is intact")
            reported = get_condition(found, "CommitInProgress")
            assert reported is not None
            assert (reported.status, reported.message) == (
                "False",
                f"attempt 1 failed: {record.message}",
            )
            assert not is_true(found, "Ready")
            assert found.status.observed_generation < found.metadata.generation
            assert disks.missing(f"it-{found.status.content_id}") == []
            assert ("Warning", "CommitFailed") in [(type_, reason) for type_, reason, _ in await world.events()]
            await asyncio.sleep(30)
            assert (await world.read()).status.record.attempts in (3, 4)
            commits.end()
            stopped = await world.reaches("Stopped")
            assert disks.missing(stopped.status.record.base_image.removeprefix("archive/")) == []
            await world.set_state("Running")
            await world.reaches("Running")
            assert disks.problems == []


@virtual
async def test_a_commit_is_given_up_after_the_last_attempt_and_the_devbox_can_run_again() -> None:
    options = Options(commit_tries=3, commit_timeout=timedelta(seconds=20), commit_retry=timedelta(seconds=5))
    async with running_world(options=options) as world:
        await world.run()
        # The deadline of the Job ends each attempt: its image never comes.
        pulls = world.plane.pods.where(labels=COMMITS).behave(failed_pulls=inf)
        content_id = (await world.read()).status.content_id
        await world.set_state("Shutdown")
        waiting = Field("status.conditions").satisfies(lambda conditions: "ImagePull" in str(conditions), "say so")
        found = await world.admin.wait_for(Devbox, "it", waiting, timeout=20)
        assert found is not None
        reported = get_condition(found, "CommitInProgress")
        assert reported is not None
        assert reported.message.startswith(
            f"the content is committed to archive/it-{content_id}-archive, attempt 1: "
            "the Job it-commit waits for its pod: "
        )
        await asyncio.sleep(300)
        await settled(world.manager, quiet=60, timeout=LONG)
        found = await world.read()
        assert (found.status.record.attempts, found.status.phase) == (3, "Shutting")
        reported = get_condition(found, "CommitInProgress")
        assert reported is not None
        assert "deadline" in reported.message
        assert reported.message.endswith("set the state to Running or Paused, and back to try again")
        assert (await world.names(Job), await world.claims()) == ([], [f"it-{content_id}"])

        await world.set_state("Running")
        again = await world.reaches("Running")
        assert (again.status.content_id, again.status.record.attempts) == (content_id, 0)
        assert again.status.record.commit_status == "Pending"
        pulls.end()
        await world.set_state("Shutdown")
        ended = await world.reaches("Shutdown")
        assert ended.status.commit_records[content_id].commit_status == "Success"


@virtual
async def test_a_commit_on_a_node_that_is_lost_says_so_and_locks_no_user_out_for_longer_than_it_may_take() -> None:
    async with running_world(nodes=2, options=Options(commit_timeout=timedelta(hours=1))) as world:
        with followed(world.plane) as disks:
            await world.run()
            disks.work()
            world.plane.pods.where(labels=COMMITS).behave(run=120)
            await world.set_state("Stopped")
            await world.admin.wait_for(Job, "it-commit", Field("status.active").equals(1), timeout=LONG)
            (pod,) = await world.admin.list(Pod, labels=COMMITS)
            world.plane.nodes.fail(pod.spec.node_name or "")
            await asyncio.sleep(600)
            found = await world.read()
            assert found.status.record.message == (
                f"the Job it-commit waits for its pod: the one on {pod.spec.node_name} is terminating"
            )
            assert (await failed(world)).status.record.message == (
                "the Job it-commit failed: Job was active longer than specified deadline; the content is intact"
            )
            await world.set_state("Running")
            await asyncio.sleep(600)
            assert await world.pod() is None  # what has the volume may still read it
            world.plane.nodes.recover(pod.spec.node_name or "")
            await world.reaches("Running")
            assert disks.problems == []


@virtual
async def test_a_namespace_with_quotas_of_limits_and_a_name_of_the_greatest_length_are_no_obstacle() -> None:
    async with running_world() as world:
        quota = ResourceQuota(
            metadata=ObjectMeta(name="all", namespace="default"),
            spec=ResourceQuotaSpec(hard={"limits.cpu": Quantity(8), "limits.memory": Quantity("32Gi")}),
        )
        await world.admin.create(quota)
        name = "d" * MAX_NAME_LENGTH
        await world.create(devbox(name=name))
        for state in STATES:
            await world.reaches(state, name)
            if state != "Shutdown":
                await world.set_state(STATES[STATES.index(state) + 1], name)
        committed = (await world.read(name)).status.commit_records.values()
        assert [record.commit_status for record in committed] == ["Success", "Pending"]


@virtual
async def test_a_devbox_that_is_deleted_while_it_is_committed_leaves_nothing() -> None:
    async with running_world() as world:
        await world.run()
        world.plane.pods.where(labels=COMMITS).behave(run=60, stop=20)
        await world.set_state("Stopped")
        await world.admin.wait_for(Job, "it-commit", Field("status.active").equals(1), timeout=LONG)
        await world.admin.delete(Devbox, "it")
        assert await world.admin.wait_for(Devbox, "it", deleted, timeout=LONG) is None
        assert (await world.names(Job), await world.names(Pod)) == ([], [])
        await asyncio.sleep(10)
        assert await world.claims() == []


@virtual
async def test_a_job_that_the_server_refuses_is_a_failed_attempt_and_locks_no_user_out() -> None:
    async with running_world() as world:
        await world.run()
        quota = ResourceQuota(
            metadata=ObjectMeta(name="no-jobs", namespace="default"),
            spec=ResourceQuotaSpec(hard={"count/jobs.batch": Quantity(0)}),
        )
        await world.admin.create(quota)
        await asyncio.sleep(5)
        await world.set_state("Stopped")
        found = await failed(world)
        assert "exceeded quota: no-jobs" in found.status.record.message
        await world.set_state("Running")
        await world.reaches("Running")


@virtual
async def test_a_job_that_a_policy_denies_with_any_reason_is_a_failed_attempt() -> None:
    async with running_world() as world:
        await world.run()
        jobs = NamedRuleWithOperations(
            api_groups=["batch"], api_versions=["v1"], resources=["jobs"], operations=["CREATE"]
        )
        policy = ValidatingAdmissionPolicySpec(
            match_constraints=MatchResources(resource_rules=[jobs]),
            validations=[Validation(expression="false", message="no jobs here", reason="RequestEntityTooLarge")],
        )
        bound = ValidatingAdmissionPolicyBindingSpec(policy_name="no-jobs", validation_actions=["Deny"])
        await world.admin.create(ValidatingAdmissionPolicy(metadata=ObjectMeta(name="no-jobs"), spec=policy))
        await world.admin.create(ValidatingAdmissionPolicyBinding(metadata=ObjectMeta(name="no-jobs"), spec=bound))
        await world.set_state("Stopped")
        found = await failed(world)
        assert "no jobs here" in found.status.record.message


@virtual
async def test_a_job_of_that_name_that_is_not_ours_is_named_and_left_alone() -> None:
    async with running_world() as world:
        await world.run()
        pod = PodSpec(restart_policy="Never", containers=[Container(name="it", image="dev:1")])
        theirs = Job(
            metadata=ObjectMeta(name="it-commit", namespace="default"),
            spec=JobSpec(template=PodTemplateSpec(spec=pod)),
        )
        await world.admin.create(theirs)
        await world.set_state("Stopped")
        found = await failed(world)
        assert found.status.record.message == (
            "the Job it-commit is not of this Devbox: delete it; the content is intact"
        )
        await world.admin.delete(theirs)
        await world.reaches("Stopped")


@virtual
async def test_a_commit_is_cancelled_when_the_state_was_changed_as_it_began() -> None:
    """The rule about states is checked before the claim of the content is stored: both can succeed."""
    async with running_world() as world:
        with followed(world.plane) as disks:
            await world.run()
            disks.work()
            await world.kill()
            found = await world.read()
            found.status.record.commit_status, found.status.record.attempts = "Committing", 1
            await world.admin.status.patch(found)
            await world.start()
            running = await world.at_rest()
            assert (running.status.phase, running.status.record.commit_status) == ("Running", "Pending")
            assert (running.status.record.attempts, await world.names(Job)) == (0, [])
            disks.work()
            await world.set_state("Stopped")
            await world.reaches("Stopped")
            await world.set_state("Running")
            await world.reaches("Running")
            assert disks.problems == []


@virtual
async def test_the_archive_of_an_attempt_that_is_given_up_keeps_its_space() -> None:
    async with running_world() as world:
        with followed(world.plane) as disks:
            await world.run()
            disks.work()
            content_id = (await world.stop_and_run()).status.content_id
            disks.work()
            base, content = (await world.read()).status.record.base_image.removeprefix("archive/"), f"it-{content_id}"
            world.plane.pods.where(labels=COMMITS).behave(run=1, exit_code=1)
            for state in ("Paused", "Running"):
                await world.set_state("Stopped")
                await failed(world)
                assert await world.claims() == sorted((base, content, f"{content}-archive"))
                await world.set_state(state)
                await world.reaches(state)
                given_up = await world.at_rest()
                # What the content began from is kept.
                assert await world.claims() == sorted((base, content))
                assert (given_up.status.record.commit_image, given_up.status.content_id) == ("", content_id)
            assert disks.problems == []


@virtual
async def test_the_archive_of_an_attempt_that_is_given_up_is_kept_when_the_content_is_gone() -> None:
    """It may be all that is left."""
    async with running_world() as world:
        running = await world.run()
        content = f"it-{running.status.content_id}"
        world.plane.pods.where(labels=COMMITS).behave(run=1, exit_code=1)
        await world.set_state("Stopped")
        await failed(world)
        await world.kill()
        await world.admin.delete(PersistentVolumeClaim, content)
        await world.admin.delete(Job, "it-commit", propagation="Foreground", missing_ok=True)
        await world.admin.wait_for(PersistentVolumeClaim, content, deleted, timeout=LONG)
        await world.set_state("Running")
        await world.start()
        await world.reaches("Running")
        await world.at_rest()
        assert f"{content}-archive" in await world.claims()


@virtual
async def test_a_content_that_is_deleted_between_two_attempts_is_reported_as_lost_and_not_as_intact() -> None:
    async with running_world() as world:
        running = await world.run()
        world.plane.pods.where(labels=COMMITS).behave(run=1, exit_code=1)
        await world.set_state("Stopped")
        await failed(world)
        await world.admin.delete(PersistentVolumeClaim, f"it-{running.status.content_id}")
        stopped = await world.reaches("Stopped", timeout=60)
        assert (stopped.status.record.commit_status, stopped.status.record.message) == ("Pending", "")
        assert "ContentLost" in [reason for _, reason, _ in await world.events()]


@virtual
async def test_a_commit_whose_job_never_ends_locks_no_user_out_for_longer_than_it_may_take() -> None:
    """As when the Job is suspended: its own deadline is suspended, too."""
    async with running_world() as world:
        await world.run()
        world.plane.pods.where(labels=COMMITS).behave(run=100)
        await world.set_state("Stopped")
        await world.admin.wait_for(Job, "it-commit", Field("status.active").equals(1), timeout=LONG)
        await world.admin.patch(Job, "it-commit", MergePatch({"spec": {"suspend": True}}))
        found = await world.admin.wait_for(Devbox, "it", FAILED, timeout=LONG + 120)
        assert found is not None
        assert found.status.record.message == (
            "it takes longer than 1:00:00: the Job it-commit waits for its pod: there is none yet; "
            "the content is intact"
        )
        await world.reaches("Stopped")  # by another Job


@virtual
async def test_an_archive_that_is_deleted_keeps_no_content_from_being_used_that_was_restored_from_it() -> None:
    async with running_world() as world:
        with followed(world.plane) as disks:
            await world.run()
            disks.work()
            base = (await world.stop_and_run()).status.record.base_image
            disks.work()
            before = await world.running_pod()
            await world.admin.delete(PersistentVolumeClaim, base.removeprefix("archive/"))
            world.plane.pods.where(name="it").evict()  # until then it protects the archive
            await world.running_pod(other_than=before.metadata.uid)
            running = await world.reaches("Running")
            lost = [note for _, reason, note in await world.events() if reason == "CommitLost"]
            content_id = running.status.content_id
            assert lost == [f"The commit {base} is gone: of the content {content_id} there is what its volume has"]
            await world.stop_and_run()
            assert disks.problems == []


@virtual
async def test_a_devbox_whose_only_archive_is_deleted_can_be_stopped_and_begins_from_the_image_again() -> None:
    async with running_world() as world:
        await world.run()
        await world.set_state("Stopped")
        base = (await world.reaches("Stopped")).status.record.base_image
        await world.admin.delete(PersistentVolumeClaim, base.removeprefix("archive/"))
        await world.set_state("Running")
        await asyncio.sleep(60)
        # It may be restored from a backup.
        waiting = get_condition(await world.reaches("Pending"), "Ready")
        assert waiting is not None
        assert f'persistentvolumeclaim "{base.removeprefix("archive/")}" not found' in waiting.message
        await world.stop_and_run()
        assert "CommitLost" in [reason for _, reason, _ in await world.events()]


@virtual
async def test_a_content_that_another_pod_uses_is_committed_when_that_is_gone() -> None:
    """What it writes meanwhile would be on a volume that is released."""
    async with running_world() as world:
        claim = f"it-{(await world.run()).status.content_id}"
        spec = PodSpec(containers=[Container(name="files", image="files:1")], volumes=[volume("files", claim)])
        theirs = await world.admin.create(Pod(metadata=ObjectMeta(name="files", namespace="default"), spec=spec))
        await world.set_state("Stopped")
        await asyncio.sleep(60)
        waiting = await world.read()
        synced = get_condition(waiting, "PodSynced")
        assert synced is not None
        assert synced.message == f"the volume {claim} is still used by the pod files"
        assert (waiting.status.phase, waiting.status.record.commit_status) == ("Stopping", "Pending")
        await world.admin.delete(theirs)
        await world.reaches("Stopped", timeout=60)


@virtual
async def test_a_content_that_never_was_on_a_volume_is_not_committed() -> None:
    async with running_world() as world:
        await world.create(devbox(state="Stopped"))
        stopped = await world.reaches("Stopped")
        assert (await world.claims(), await world.names(Job)) == ([], [])
        await world.set_state("Shutdown")
        await world.reaches("Shutdown")
        await world.set_state("Paused")
        paused = await world.reaches("Paused")
        assert paused.status.content_id == stopped.status.content_id
        assert (await world.claims(), await world.names(Job)) == ([], [])


@virtual
async def test_a_volume_that_another_client_deletes_is_reported_as_lost() -> None:
    async with running_world() as world:
        running = await world.run()
        claim = f"it-{running.status.content_id}"
        await world.admin.delete(PersistentVolumeClaim, claim)
        synced = get_condition(await world.at_rest(), "PodSynced")
        assert synced is not None
        assert (synced.status, synced.reason) == ("False", "ContentDeleted")
        assert synced.message.startswith(f"another client has deleted the volume {claim}: it goes when the pod does")
        await world.set_state("Paused")
        await world.reaches("Paused")
        await world.admin.wait_for(PersistentVolumeClaim, claim, deleted, timeout=LONG)
        await world.set_state("Running")
        await world.reaches("Running")
        lost = [note for _, reason, note in await world.events() if reason == "ContentLost"]
        assert lost == [f"The volume of the content {running.status.content_id} is gone: it begins from dev:1"]
        await world.set_state("Paused")
        await world.reaches("Paused")
        await world.admin.delete(PersistentVolumeClaim, claim)
        await world.admin.wait_for(PersistentVolumeClaim, claim, deleted, timeout=LONG)
        await world.set_state("Stopped")
        await world.reaches("Stopped")
        assert await world.names(Job) == []


@virtual
async def test_a_committer_of_images_has_pods_begin_from_the_image_of_the_last_commit() -> None:
    registry = InMemoryRegistry()
    committer = InMemoryCommitter(registry, polls=3, failures=1)
    async with running_world(committer=committer) as world:
        await world.run()
        images = list[str | None]()
        for _ in range(3):
            images.append((await world.running_pod()).spec.containers[0].image)
            await world.set_state("Stopped")
            stopped = await world.reaches("Stopped")
            await world.at_rest()
            assert list(registry.images) == [stopped.status.record.base_image]
            await world.set_state("Running")
            await world.reaches("Running")
        records = (await world.read()).status.commit_records.values()
        assert images == [record.base_image for record in records][:3]
        assert [record.commit_status for record in records] == ["Success", "Success", "Success", "Pending"]
        # A commit that was discarded has no name any more.
        assert [bool(record.commit_image) for record in records] == [False, False, True, False]
        await world.admin.delete(Devbox, "it")
        await world.admin.wait_for(Devbox, "it", deleted, timeout=LONG)
        assert registry.images == {}


@virtual
async def test_only_the_last_records_are_kept_and_always_those_that_are_needed() -> None:
    made, registry = devbox(), InMemoryRegistry()
    committer = InMemoryCommitter(registry)
    for number in range(2 * MAX_RECORDS):
        record = CommitRecord(base_image=f"it:{number}", commit_image=f"it:{number + 1}", commit_status="Success")
        record.generate_time = now() + timedelta(seconds=number)
        made.status.commit_records[f"content-{number}"] = record
        registry.images[f"it:{number + 1}"] = ""
    made.status.content_id = f"content-{2 * MAX_RECORDS - 1}"
    made.status.record.commit_status, made.status.record.commit_image = "Pending", ""
    async with running_world() as world:
        client = world.manager.client
        context = DevboxContext(made, client, RecordedEvents(), committer, Options())
        await discard_commits(context)
    assert list(made.status.commit_records) == [f"content-{n}" for n in range(MAX_RECORDS, 2 * MAX_RECORDS)]
    assert made.status.record.base_image in registry.images
    assert [record.commit_image for record in made.status.commit_records.values() if record.commit_image] == [
        made.status.record.base_image
    ]


@virtual
async def test_pods_that_commit_are_selected_by_no_service_of_any_devbox() -> None:
    async with running_world() as world:
        await world.run()
        await world.create(devbox(name="it-commit"))
        await world.reaches("Running", "it-commit")
        world.plane.pods.where(labels=COMMITS).behave(run=60)
        await world.set_state("Stopped")
        await world.admin.wait_for(Job, "it-commit", Field("status.active").equals(1), timeout=LONG)
        selected = list[list[str]]()
        for name in ("it-svc", "it-commit-svc"):
            service = await world.admin.get(Service, name)
            pods = await world.admin.list(Pod, labels=service.spec.selector)
            selected.append([pod.metadata.name for pod in pods])
        assert selected == [[], ["it-commit"]]


@virtual
async def test_an_archive_that_is_deleted_before_the_commit_ends_is_not_taken_for_one() -> None:
    async with running_world() as world:
        with followed(world.plane) as disks:
            running = await world.run()
            disks.work()
            slow = world.plane.pods.where(labels=COMMITS).behave(run=30)
            await world.set_state("Stopped")
            await world.admin.wait_for(Job, "it-commit", Field("status.active").equals(1), timeout=LONG)
            await asyncio.sleep(10)
            archive = f"it-{running.status.content_id}-archive"
            await world.admin.delete(PersistentVolumeClaim, archive)
            slow.end()
            found = await failed(world)
            assert found.status.record.message == (
                f"another client has deleted the volume {archive} that the content is archived to; "
                "the content is intact"
            )
            await world.reaches("Stopped")
            await world.set_state("Running")
            await world.reaches("Running")
            assert disks.problems == []


@virtual
async def test_a_job_that_has_lost_its_labels_is_still_the_commit_and_locks_no_user_out() -> None:
    async with running_world() as world:
        with followed(world.plane) as disks:
            await world.run()
            disks.work()
            world.plane.pods.where(labels=COMMITS).behave(run=30)
            await world.set_state("Stopped")
            await world.admin.wait_for(Job, "it-commit", Field("status.active").equals(1), timeout=LONG)
            await world.admin.patch(Job, "it-commit", MergePatch({"metadata": {"labels": None}}))
            stopped = await world.reaches("Stopped", timeout=60)
            assert disks.missing(stopped.status.record.base_image.removeprefix("archive/")) == []


@virtual
async def test_a_job_that_has_ended_before_the_status_was_lost_is_not_the_next_commit() -> None:
    """What was written after it would not be in its archive."""
    async with running_world() as world:
        with followed(world.plane) as disks:
            running = await world.run()
            world.plane.pods.where(labels=COMMITS).behave(run=30)
            await world.set_state("Stopped")
            await world.admin.wait_for(Job, "it-commit", Field("status.active").equals(1), timeout=LONG)
            await world.kill()
            await world.admin.patch(Job, "it-commit", MergePatch({"metadata": {"labels": None}}))
            records: JSONObject = {running.status.content_id: {"commitStatus": "Pending"}}
            await world.admin.status.patch(Devbox, "it", MergePatch({"status": {"commitRecords": records}}))
            await world.set_state("Running")
            await world.admin.wait_for(Job, "it-commit", condition("Complete"), timeout=LONG)
            await world.start()
            await world.reaches("Running")
            disks.work()
            await world.stop_and_run()
            assert disks.problems == []


@virtual
async def test_an_image_that_is_called_like_an_archive_is_an_image() -> None:
    async with running_world() as world:
        wanted = devbox()
        wanted.spec.image = "archive/it-archive"
        await world.create(wanted)
        await world.reaches("Running")
        running = await world.stop_and_run()
        assert running.status.record.base_image.endswith("-archive")
        (container,) = (await world.running_pod()).spec.containers
        assert container.image == "archive/it-archive"
