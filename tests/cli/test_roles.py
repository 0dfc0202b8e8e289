"""`kubewright roles`: what is declared, what was used, and the difference."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.cli.command import Done, command, command_beside
from tests.cli.ferryman import Ferryman

from kubewright import Client, ControlPlane, Forbidden, Manager
from kubewright.api.core.v1 import Node, Pod
from kubewright.api.meta import ObjectMeta
from kubewright.client.wait import Field, deleted
from kubewright.manager.roles import declared_permissions
from kubewright.manifest.documents import documents
from kubewright.testing import Install, restricted_client
from kubewright.testing.recording import VARIABLE


@pytest.fixture
def ferryman(tmp_path: Path) -> Ferryman:
    return Ferryman.write(tmp_path / "project", "ferryman")


def roles(project: Ferryman, *arguments: str) -> Done:
    return command("roles", project.package, *arguments, cwd=project.directory)


def audit_log(path: Path, *requests: tuple[str, str, str], user: str, test: bool = False, name: str = "it") -> Path:
    """Requests, given by verb, resource and namespace, as a server logs them."""
    with path.open("ab") as file:
        for verb, resource, namespace in requests:
            plural, _, group = resource.partition(".")
            event = {
                "kind": "Event",
                "apiVersion": "audit.k8s.io/v1",
                "level": "Metadata",
                "stage": "ResponseComplete",
                "verb": verb,
                "requestURI": f"/apis/{group}/v1/{plural}",
                "user": {"username": user, "groups": ["system:authenticated"]},
                "objectRef": {"resource": plural, "apiGroup": group, "namespace": namespace, "name": name},
                "annotations": {"kubewright/recorded-by": "pytest"} if test else {},
            }
            file.write(msgspec.json.encode(event) + b"\n")
    return path


def test_the_declared_roles_are_those_that_are_deployed(ferryman: Ferryman) -> None:
    done = roles(ferryman)
    assert (done.code, done.errors) == (0, "")
    command("generate", "ferryman", cwd=ferryman.directory)
    deployed = (ferryman.directory / "config/rbac/role.yaml").read_text()
    labels = "  labels:\n    app.kubernetes.io/managed-by: kubewright\n    app.kubernetes.io/name: ferryman\n"
    assert done.output == deployed.partition("\n")[2].replace(labels, "")


async def test_the_least_role_is_that_of_what_tests_have_requested(
    control_plane: ControlPlane,
    admin: Client,
    install: Install,
    project: Ferryman,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = tmp_path / "used.jsonl"
    monkeypatch.setenv(VARIABLE, str(used))
    module = project.imported()
    await install(module.Ferry)
    async with restricted_client(control_plane, await declared_permissions(module.setup)) as own:
        manager = Manager(own)
        module.setup(manager)
        async with manager.running():
            created = await admin.create(project.ferry(ObjectMeta(name="big", namespace="default")))
            await admin.wait_for(
                created, Field("metadata.finalizers[0]").equals(f"{project.group}/cleanup"), timeout=30
            )
            await admin.delete(created)
            await admin.wait_for(created, deleted, timeout=30)
        with pytest.raises(Forbidden):
            await own.apply(Node(metadata=ObjectMeta(name="it")))
        with pytest.raises(Forbidden):
            await own.get(Pod, "it", namespace="default")
    monkeypatch.delenv(VARIABLE)

    least = await command_beside("roles", project.package, "--used", str(used), cwd=project.directory)
    [role] = documents(least.output, "role")
    assert isinstance(role.value, dict)
    assert role.value["metadata"] == {"name": project.name}
    assert role.value["rules"] == [
        {"apiGroups": [""], "resources": ["nodes"], "verbs": ["create", "patch"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
        {"apiGroups": [project.group], "resources": ["ferries"], "verbs": ["get", "list", "patch", "watch"]},
    ]
    checked = await command_beside("roles", project.package, "--used", str(used), "--check", cwd=project.directory)
    assert checked == (
        1,
        "declared and never used: create configmaps\n"
        "declared and never used: create events.events.k8s.io\n"
        "declared and never used: patch events.events.k8s.io\n"
        "used and not declared: create nodes\n"
        "used and not declared: patch nodes\n"
        "used and not declared: get pods\n",
        f"kubewright: the roles of {project.name} are not what was used\n",
    )


EVERYTHING = (
    ("watch", "ferries.ferryman.cli.test", ""),
    ("patch", "ferries.ferryman.cli.test", "somewhere"),
    ("create", "configmaps", "somewhere"),
    ("create", "events.events.k8s.io", "somewhere"),
)


def test_roles_that_are_what_was_used_are_all_right(ferryman: Ferryman, tmp_path: Path) -> None:
    log = audit_log(tmp_path / "audit.log", *EVERYTHING, user="operator-1", test=True)
    audit_log(log, ("delete", "nodes", ""), user="admin")
    assert roles(ferryman, "--used", str(log), "--check") == (0, "", "")


def test_in_the_log_of_a_server_the_requests_of_the_service_account_count(ferryman: Ferryman, tmp_path: Path) -> None:
    log = audit_log(tmp_path / "audit.log", *EVERYTHING, user="system:serviceaccount:ferryman-system:ferryman")
    audit_log(log, ("delete", "nodes", ""), user="admin")
    # What it needs for its lease, though no test uses that, is declared.
    audit_log(log, ("update", "leases.coordination.k8s.io", "ferryman-system"), user="other")
    assert roles(ferryman, "--used", str(log), "--check") == (0, "", "")
    done = roles(ferryman, "--used", str(log), "--check", "--user", "admin", "--user", "other")
    assert "used and not declared: delete nodes\n" in done.output
    assert 'used and not declared: update leases.coordination.k8s.io "it"' in done.output


def test_an_operator_of_some_namespaces_needs_roles_in_these(ferryman: Ferryman, tmp_path: Path) -> None:
    requests = [(verb, resource, "somewhere") for verb, resource, _ in EVERYTHING]
    log = audit_log(tmp_path / "audit.log", *requests, user="operator-1", test=True)
    shops = ("--", "--namespace=shop", "--namespace=stock")
    assert roles(ferryman, "--used", str(log), "--check", *shops) == (0, "", "")
    least = [role.value for role in documents(roles(ferryman, "--used", str(log), *shops).output, "roles")]
    metadata = [role["metadata"] for role in least if isinstance(role, dict)]
    assert metadata == [{"name": "ferryman", "namespace": "shop"}, {"name": "ferryman", "namespace": "stock"}]
    # A Namespace is in none, whatever an audit log says.
    opened = audit_log(tmp_path / "opened.log", ("patch", "namespaces", "somewhere"), user="operator-1", test=True)
    [role] = documents(roles(ferryman, "--used", str(opened), *shops).output, "roles")
    assert isinstance(role.value, dict)
    assert (role.value["kind"], role.value["metadata"]) == ("ClusterRole", {"name": "ferryman"})
    # A server's log says where it was.
    log = audit_log(tmp_path / "server.log", *requests, user="system:serviceaccount:ferryman-system:ferryman")
    done = roles(ferryman, "--used", str(log), "--check", *shops)
    assert 'used and not declared: create configmaps in the namespace "somewhere"\n' in done.output


def test_names_that_differ_between_tests_are_not_the_only_ones(ferryman: Ferryman, tmp_path: Path) -> None:
    """A role with the names that tests happened to have would permit nothing else."""
    log = tmp_path / "audit.log"
    for test in ("first", "second"):
        audit_log(log, ("get", "secrets", test), user="operator-1", test=True, name=f"password-{test}")
        audit_log(log, ("get", "leases.coordination.k8s.io", test), user="operator-1", test=True)
    least = [role.value for role in documents(roles(ferryman, "--used", str(log)).output, "roles")]
    assert [(role["kind"], role["rules"]) for role in least if isinstance(role, dict)] == [
        ("ClusterRole", [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]),
        (
            "Role",
            [
                {
                    "apiGroups": ["coordination.k8s.io"],
                    "resourceNames": ["it"],
                    "resources": ["leases"],
                    "verbs": ["get"],
                }
            ],
        ),
    ]


def test_what_no_request_shows_is_a_warning(ferryman: Ferryman, tmp_path: Path) -> None:
    writes = [("create", f"{plural}.rbac.authorization.k8s.io", "shop") for plural in ("roles", "rolebindings")]
    log = audit_log(tmp_path / "audit.log", *writes, user="operator-1", test=True)
    warnings = roles(ferryman, "--used", str(log)).errors.splitlines()
    assert [line.partition("its role needs")[2] for line in warnings] == [
        ' the verb "bind" on these roles',
        ' the verb "escalate" on roles',
    ]


@pytest.mark.parametrize(
    ("arguments", "content", "sentence"),
    [
        (["--check"], "", "--check is about what was used: add --used FILE"),
        (["--user", "x"], "", "--user is about what was used: add --used FILE"),
        (
            ["--used", "used"],
            "",
            "used has no requests of system:serviceaccount:ferryman-system:ferryman, and no test recorded any: name "
            "their users with --user NAME",
        ),
        (["--used", "used", "--user", "x"], "", "used has no requests of x: name their users with --user NAME"),
        (
            ["--used", "used"],
            "kind: Role\n",
            "used, line 1: expected an event of an audit log, as JSON on one line: name a file that pytest "
            "--record-permissions or a kube-apiserver with --audit-log-path has written",
        ),
        (["--used", "nowhere"], "", "cannot read nowhere: No such file or directory"),
    ],
)
def test_what_cannot_be_compared_is_a_sentence(
    arguments: list[str], content: str, sentence: str, ferryman: Ferryman
) -> None:
    (ferryman.directory / "used").write_text(content)
    assert roles(ferryman, *arguments) == (1, "", f"kubewright: {sentence}\n")
