"""`kubewright requests`: which requests are listed, shown and deleted, and by whom."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from tests.cli.command import Done, command, command_beside

from kubewright import (
    Client,
    Config,
    ControlPlane,
    Forbidden,
    Model,
    Permission,
    Resource,
    Time,
    resource,
)
from kubewright.api import Choice
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.core.v1 import Event, ObjectReference, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.api.time import now
from kubewright.cli.cluster.target import TargetCluster
from kubewright.cli.request_kinds import request_kinds
from kubewright.cli.request_objects import RequestFilter, requests_of
from kubewright.cli.requests import _deleted
from kubewright.client import MergePatch
from kubewright.client.config.in_cluster import config_in_cluster
from kubewright.client.errors import NotFound
from kubewright.client.wait import deleted, exists
from kubewright.deployment import Operator, RequestCleanup, objects_of
from kubewright.deployment.operator import CLEANUP
from kubewright.patterns import RequestStatus
from kubewright.patterns.request_status import Phase
from kubewright.testing import Install, restricted_client, unique_name

GROUP = "requests.cli.test"


class GrantSpec(Model):
    user: str
    role: str = "viewer"


@resource(f"{GROUP}/v1", short_names=["gr"])
class Grant(Resource[GrantSpec, RequestStatus]):
    """Requests a role."""


class EvictionRequestStatus(RequestStatus):
    evicted: int = 0


class EvictionRequestSpec(Model):
    node: str


@resource(f"{GROUP}/v1", namespaced=False)
class Evictionrequest(Resource[EvictionRequestSpec, EvictionRequestStatus]):
    """Requests that a node is drained; without a namespace, and without a user."""


class BackupStatus(Model):
    phase: Choice[Phase] = "Pending"
    completion_time: Time | None = None


@resource(f"{GROUP}/v1")
class Backup(Resource[GrantSpec, BackupStatus]):
    """Has the phases of a request and a time of completion, and is none: nothing keeps its phases final."""


async def grant(
    admin: Client, namespace: str, name: str, phase: Phase | None, *, user: str = "alice", ago: timedelta | None = None
) -> Grant:
    """A request that is in a phase, and ended some time ago."""
    created = await admin.create(Grant(metadata=ObjectMeta(name=name, namespace=namespace), spec=GrantSpec(user=user)))
    if phase is None:
        return created
    status = RequestStatus(phase=phase, message=f"it is {phase}", completion_time=now() - ago if ago else None)
    created.status = status
    return await admin.status.patch(created)


async def published(admin: Client, *kinds: str) -> None:
    """Return when the server publishes the schemas of these kinds: a real one does a moment after their definition."""
    async with asyncio.timeout(60):
        while True:
            with suppress(NotFound):
                if {*kinds} <= (await admin.schemas(f"{GROUP}/v1")).keys():
                    return
            await asyncio.sleep(0.1)


async def names(admin: Client, namespace: str) -> set[str | None]:
    return {each.metadata.name for each in await admin.list(Grant, namespace=namespace)}


async def some_grants(admin: Client, namespace: str) -> None:
    day = timedelta(days=1)
    await grant(admin, namespace, "fresh", None)
    await grant(admin, namespace, "running", "Processing")
    await grant(admin, namespace, "done-now", "Completed", ago=timedelta(minutes=1))
    await grant(admin, namespace, "done-long-ago", "Completed", ago=3 * day)
    await grant(admin, namespace, "failed-long-ago", "Failed", user="bob", ago=2 * day)
    # Of no use to anyone, but not known to have ended long ago.
    await grant(admin, namespace, "failed-some-day", "Failed")


async def requests(kubeconfig: str, *arguments: str) -> Done:
    return await command_beside("requests", *arguments, "--kubeconfig", kubeconfig)


async def test_item_84_only_requests_that_ended_long_ago_are_deleted(
    admin: Client, kubeconfig: str, install: Install, namespace: str
) -> None:
    await install(Grant)
    await some_grants(admin, namespace)
    all_of_them = await names(admin, namespace)

    tried = await requests(kubeconfig, "cleanup", "grants", "-n", namespace, "--older-than", "24h", "--dry-run")
    assert (tried.code, tried.output) == (
        0,
        f"would delete Grant {namespace}/done-long-ago: Completed 3d ago\n"
        f"would delete Grant {namespace}/failed-long-ago: Failed 2d ago\n",
    )
    assert await names(admin, namespace) == all_of_them

    failed = await requests(kubeconfig, "cleanup", "gr", "-n", namespace, "--older-than", "24h", "--phase", "Failed")
    assert failed.output.splitlines() == [f"delete Grant {namespace}/failed-long-ago: Failed 2d ago", "1 deleted"]
    of_bob = await requests(kubeconfig, "cleanup", "Grant", "-n", namespace, "--older-than", "24h", "--user", "bob")
    there = f"in the namespace {namespace} (-A: in all namespaces)\n"
    assert (of_bob.output, of_bob.errors) == ("", f"0 requests have ended so long ago {there}")
    rest = await requests(kubeconfig, "cleanup", f"grants.{GROUP}", "-n", namespace, "--older-than", "24h")
    assert (rest.code, rest.output.splitlines()[-1]) == (0, "1 deleted")
    assert await names(admin, namespace) == all_of_them - {"done-long-ago", "failed-long-ago"}


async def test_item_84_a_cron_job_deletes_them_with_no_other_rights(
    control_plane: ControlPlane, admin: Client, install: Install, namespace: str, tmp_path: Path
) -> None:
    await install(Grant, Evictionrequest)
    await published(admin, "Grant", "Evictionrequest")
    await some_grants(admin, namespace)
    name = unique_name("granter")
    cleanup = RequestCleanup(older_than=timedelta(hours=30), namespace=namespace)
    kinds: list[type[Object]] = [Grant, Evictionrequest]
    operator = Operator(name=name, image="granter:1", namespace=namespace, kinds=kinds, cleanup=cleanup)
    account = ServiceAccount(metadata=operator.metadata(CLEANUP))
    applied = [each for each in objects_of(operator) if (each.metadata.name or "").endswith(CLEANUP)]
    for each in applied:
        await admin.apply(each, field_validation="Strict")
    [job] = [each for each in applied if each.kind == "CronJob"]
    shown = await control_plane.kubectl("get", "cronjob", job.metadata.name or "", "-n", namespace, "-o", "json")
    [container] = json.loads(shown.stdout)["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "granter:1"
    assert container["command"][:4] == ["python", "-m", "kubewright", "requests"]

    # As its ServiceAccount. In its pod it needs neither a kubeconfig nor consent.
    await admin.wait_for(account, exists, timeout=30)
    token = (await admin.token(account)).status.token
    own = tmp_path / "own"
    own.write_text(admin.config.to_kubeconfig(token=token))
    given = [*container["command"][3:], "--kubeconfig", str(own)]
    done = await command_beside(*given)
    async with asyncio.timeout(60):
        while "cannot list resource" in done.errors:  # a real server takes a moment to know of a role
            done = await command_beside(*given)
    assert (done.code, done.output.splitlines()[-1]) == (0, "2 deleted"), done.errors
    assert {"fresh", "running", "done-now", "failed-some-day"} == await names(admin, namespace)
    for each in applied:
        await admin.delete(each, missing_ok=True)


async def test_objects_of_another_kind_are_never_deleted(
    control_plane: ControlPlane, admin: Client, kubeconfig: str, install: Install, namespace: str, tmp_path: Path
) -> None:
    """Also by a user who may not read definitions, and so names the kind in full."""
    await install(Backup)
    await published(admin, "Backup")
    backup = Backup(metadata=ObjectMeta(name="precious", namespace=namespace), spec=GrantSpec(user="alice"))
    created = await admin.create(backup)
    created.status = BackupStatus(phase="Completed", completion_time=now() - timedelta(days=7))
    await admin.status.patch(created)
    may_delete = Permission(Backup, "list", "delete", namespace=namespace)
    async with restricted_client(control_plane, [may_delete]) as restricted:
        with pytest.raises(Forbidden):
            await restricted.get(CustomResourceDefinition, f"backups.{GROUP}")
        own = tmp_path / "own"
        own.write_text(restricted.config.to_kubeconfig())
        for config in (kubeconfig, str(own)):
            named = (f"backups.v1.{GROUP}", "-n", namespace, "--older-than", "1h")
            done = await requests(config, "cleanup", *named, "--yes")
            assert (done.code, done.output) == (1, "")
            assert "are not requests: their status is not defined as a kubewright.patterns.RequestStatus" in done.errors
    assert await admin.find(created) is not None


async def test_requests_are_listed_and_shown(admin: Client, kubeconfig: str, install: Install, namespace: str) -> None:
    await install(Grant, Evictionrequest, Backup)
    await some_grants(admin, namespace)
    await admin.create(
        Backup(metadata=ObjectMeta(name="no-request", namespace=namespace), spec=GrantSpec(user="alice"))
    )
    eviction = Evictionrequest(metadata=ObjectMeta(name=namespace), spec=EvictionRequestSpec(node="n1"))
    created = await admin.create(eviction)
    await grant(admin, namespace, "forged", None, user="eve\x1b[8m\nnobody")

    listed = await requests(kubeconfig, "list", "-n", namespace)
    rows = [re.split(r" {3,}", line) for line in listed.output.splitlines()]
    assert rows[0] == ["KIND", "NAMESPACE", "NAME", "USER", "PHASE", "AGE", "MESSAGE"]
    assert {row[2] for row in rows[1:] if row[0] == "Grant"} == await names(admin, namespace)
    assert ["Evictionrequest", "-", namespace, "-", "Pending"] in [row[:5] for row in rows]
    assert ["Grant", namespace, "done-long-ago", "alice", "Completed", "3d", "it is Completed"] in rows
    assert ["Grant", namespace, "forged", "eve [8m nobody"] in [row[:4] for row in rows]
    assert "Backup" not in listed.output

    chosen = ["grant", "-n", namespace, "--phase", "Failed", "--user", "bob", "--older-than", "1d"]
    as_json = json.loads((await requests(kubeconfig, "list", *chosen, "-o", "json")).output)
    assert as_json["kind"] == "List"
    assert [item["metadata"]["name"] for item in as_json["items"]] == ["failed-long-ago"]
    none = await requests(kubeconfig, "list", *chosen, "--user", "carol")
    assert none == (0, "", f"no requests in the namespace {namespace} (-A: in all namespaces)\n")
    chosen[1:3] = ["-A"]
    assert await requests(kubeconfig, "list", *chosen, "--user", namespace) == (0, "", "no requests\n")

    about = ObjectReference(uid=created.metadata.uid, name=namespace, kind="Evictionrequest")
    metadata = ObjectMeta(name=unique_name("drained"), namespace="default")
    await admin.create(
        Event(metadata=metadata, involved_object=about, reason="Drained", message="done\x1b[2J", type="Normal")
    )
    shown = await requests(kubeconfig, "show", f"evictionrequest/{namespace}")
    assert shown.output.splitlines()[0].startswith(f"Evictionrequest {namespace}: Pending, ")
    assert "spec:\n  node: n1\n" in shown.output
    assert shown.output.endswith("event: Normal Drained: done [2J\n")
    found = json.loads((await requests(kubeconfig, "show", "gr/running", "-n", namespace, "-o", "json")).output)
    assert found["spec"] == {"user": "alice", "role": "viewer"}
    await admin.delete(created)


async def test_a_request_is_shown_to_who_may_not_read_its_events(
    control_plane: ControlPlane, admin: Client, install: Install, namespace: str, tmp_path: Path
) -> None:
    await install(Grant)
    await published(admin, "Grant")
    await grant(admin, namespace, "running", "Processing")
    shown = ("show", f"grants.v1.{GROUP}/running", "-n", namespace)
    async with restricted_client(control_plane, [Permission(Grant, "get", namespace=namespace)]) as restricted:
        own = tmp_path / "own"
        own.write_text(restricted.config.to_kubeconfig())
        done = await requests(str(own), *shown)
        assert done.code == 0, done.errors
        assert done.output.startswith(f"Grant {namespace}/running: Processing, ")
        assert done.errors.startswith(f"its events are not shown: list Event in {namespace}: ")
        assert (await requests(str(own), *shown, "-o", "json")).errors == ""


async def test_what_is_not_a_request_is_a_sentence(
    control_plane: ControlPlane, admin: Client, kubeconfig: str, install: Install, namespace: str, tmp_path: Path
) -> None:
    await install(Grant, Evictionrequest, Backup)
    await published(admin, "Grant", "Backup")
    none = (
        "are not requests: their status is not defined as a kubewright.patterns.RequestStatus, with the phases "
        "Pending, Processing, Completed, Failed, a rule that lets them only go forward, and a completionTime\n"
    )
    for arguments, sentence in {
        ("list", f"backups.{GROUP}"): f"backups.{GROUP} {none}",
        ("list", f"backups.v1.{GROUP}"): f"backups.v1.{GROUP} {none}",
        ("list", "grnt"): 'there are no requests called "grnt", did you mean "grant"? (kinds of requests: ',
        ("list", "pods"): 'there are no requests called "pods"',
        ("list", f"grnts.{GROUP}"): f'there are no grnts.{GROUP}, did you mean "grants.{GROUP}"? (kinds of requests: ',
        ("show", "grant"): '"grant" does not name a request: expected KIND/NAME, such as grant/alice',
        ("show", "grant/none"): "there is no Grant default/none",
    }.items():
        done = await requests(kubeconfig, *arguments)
        assert (done.code, done.output) == (1, "")
        assert done.errors.startswith(f"kubewright: {sentence}")
    # Of a user who may not read definitions.
    own = tmp_path / "own"
    own.write_text(control_plane.add_user("reader").kubeconfig)
    for given, sentence in {
        ("list",): "which kinds are requests shows in definitions, and these may not be read: name kinds as "
        "PLURAL.VERSION.GROUP, such as grants.v1.user.example.com\n",
        ("list", f"grants.{GROUP}"): "which kinds are requests shows in definitions, and these may not be read: name "
        f"kinds as PLURAL.VERSION.GROUP, such as grants.v1.{GROUP}\n",
        ("list", "jobs.v1.batch"): "jobs.batch are Kubernetes' own, and not requests\n",
        ("list", f"backups.v1.{GROUP}"): f"backups.v1.{GROUP} {none}",
        ("list", f"boats.v1.{GROUP}"): f"the server has no boats in {GROUP}/v1; is their definition installed?\n",
        ("list", f"grants.v1.{GROUP}"): "list Grant in default: ",
    }.items():
        done = await requests(str(own), *given)
        assert (done.code, done.output) == (1, "")
        assert done.errors.startswith(f"kubewright: {sentence}")


async def test_a_request_that_changes_meanwhile_is_kept(
    admin: Client, kubeconfig: str, install: Install, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await install(Grant)
    await some_grants(admin, namespace)
    kinds = await request_kinds(admin, ["grants"])
    wanted = RequestFilter(["Completed", "Failed"], older_than=timedelta(days=1))
    found = [each async for each in requests_of(admin, kinds, namespace, wanted)]
    assert len(found) == 2
    await admin.patch(
        Grant, "done-long-ago", MergePatch({"metadata": {"labels": {"keep": "yes"}}}), namespace=namespace
    )
    await admin.delete(Grant, "failed-long-ago", namespace=namespace)
    await admin.wait_for(Grant, "failed-long-ago", deleted, namespace=namespace, timeout=30)
    await grant(admin, namespace, "failed-long-ago", None)  # another one of that name

    assert await _deleted(TargetCluster(Config.from_kubeconfig(kubeconfig)), found) == (0, 0)
    assert f"kept Grant {namespace}/done-long-ago: it has changed meanwhile\n" in capsys.readouterr().err
    assert {"done-long-ago", "failed-long-ago"} <= await names(admin, namespace)


async def test_a_request_that_may_not_be_deleted_keeps_no_other_one(
    control_plane: ControlPlane, admin: Client, install: Install, namespace: str, tmp_path: Path
) -> None:
    await install(Grant)
    await published(admin, "Grant")
    await some_grants(admin, namespace)
    may = (
        Permission(Grant, "list", namespace=namespace),
        Permission(Grant, "delete", name="failed-long-ago", namespace=namespace),
    )
    async with restricted_client(control_plane, may) as restricted:
        own = tmp_path / "own"
        own.write_text(restricted.config.to_kubeconfig())
        done = await requests(str(own), "cleanup", f"grants.v1.{GROUP}", "-n", namespace, "--older-than", "24h")
    assert (done.code, done.output.splitlines()[-1]) == (1, "1 deleted")
    first, *_, last = done.errors.splitlines()
    assert first.startswith(f"kept Grant {namespace}/done-long-ago: delete Grant {namespace}/done-long-ago: ")
    assert last == "kubewright: 1 could not be deleted"
    assert "failed-long-ago" not in await names(admin, namespace)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["cleanup"], "the following arguments are required: --older-than"),
        (["cleanup", "--older-than", "0s"], "'0s' is no age: expected one above 0, such as 90m, 24h or 7d"),
        (["cleanup", "--older-than", "-1h"], "argument --older-than: expected one argument"),
        (["cleanup", "--older-than", "long"], "'long' is not a duration: expected one such as 90s, 5m or 1h30m"),
        (["cleanup", "--older-than", "1h", "--phase", "Pending"], "argument --phase: invalid choice: 'Pending'"),
        (["list", "-A", "-n", "x"], "argument -n/--namespace: not allowed with argument -A/--all-namespaces"),
        (["lits"], 'there is no command "lits", did you mean "list"? (commands: list, show, cleanup); see kubewright'),
        (["list", "--fase", "x"], 'requests list has no option "--fase", did you mean "--phase"?'),
    ],
)
def test_nonsense_is_refused(arguments: list[str], sentence: str) -> None:
    done = command("requests", *arguments)
    assert (done.code, done.output) == (2, "")
    assert sentence in done.errors


def test_in_a_pod_there_is_nothing_to_ask(embedded_control_plane: ControlPlane, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text(embedded_control_plane.ca_certificate)
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    cluster = TargetCluster(config_in_cluster(tmp_path, environment))
    assert (cluster.is_in_cluster, cluster.is_local) == (True, False)
    assert str(cluster) == "https://10.0.0.1:443 (in the cluster)"
