from __future__ import annotations

from datetime import timedelta

import pytest

from kubewright import Client, Model, Resource, resource
from kubewright.api.batch.v1 import CronJob
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding
from kubewright.api.resources import Object
from kubewright.deployment import Operator, RequestCleanup, files_of, objects_of
from kubewright.deployment.workload import disruption_budget, network_policy
from kubewright.manifest import ManifestError
from kubewright.patterns import RequestStatus
from kubewright.patterns.request_status import Phase

GROUP = "cleanup.deployment.test"


class GrantSpec(Model):
    user: str


@resource(f"{GROUP}/v1")
class Grant(Resource[GrantSpec, RequestStatus]):
    """Requests a role."""


@resource(f"{GROUP}/v1beta1", kind="Grant", storage=False)
class GrantV1Beta1(Resource[GrantSpec, RequestStatus]):
    """Requests a role."""


class RemovalStatus(RequestStatus):
    removed: int = 0


@resource(f"{GROUP}/v1", namespaced=False)
class Removal(Resource[GrantSpec, RemovalStatus]):
    """Requests that a user is removed."""


@resource(f"{GROUP}/v1")
class Bridge(Resource[GrantSpec, None]):
    """Not a request."""


KINDS: list[type[Object]] = [Removal, Bridge, Grant, GrantV1Beta1]


def granter(cleanup: RequestCleanup) -> Operator:
    return Operator(name="granter", image="granter:1", kinds=KINDS, cleanup=cleanup)


def of_cleanup(operator: Operator) -> dict[type[Object], Object]:
    found = [each for each in objects_of(operator) if each.metadata.name == "granter-cleanup"]
    return {type(each): each for each in found}


def test_a_cron_job_with_the_operators_image_runs_the_command() -> None:
    job = of_cleanup(granter(RequestCleanup(older_than=timedelta(days=7), schedule="@daily")))[CronJob]
    assert isinstance(job, CronJob)
    pod = job.spec.job_template.spec.template.spec
    [container] = pod.containers
    assert (job.spec.schedule, container.image, pod.service_account_name) == ("@daily", "granter:1", "granter-cleanup")
    command = ["python", "-m", "kubewright", "requests", "cleanup"]
    kinds = [f"grants.v1.{GROUP}", f"removals.v1.{GROUP}"]
    assert container.command == [*command, *kinds, "--all-namespaces", "--older-than=168h"]


def test_it_may_list_and_delete_requests_and_nothing_else() -> None:
    everywhere = of_cleanup(granter(RequestCleanup()))
    role = everywhere[ClusterRole]
    assert isinstance(role, ClusterRole)
    permitted = PolicyRule(api_groups=[GROUP], resources=["grants", "removals"], verbs=["delete", "get", "list"])
    assert role.rules == [permitted]
    assert Role not in everywhere

    in_shop = of_cleanup(granter(RequestCleanup(namespace="shop", phases=["Failed"])))
    role, binding = in_shop[Role], in_shop[RoleBinding]
    assert isinstance(role, Role)
    assert isinstance(binding, RoleBinding)
    assert (role.metadata.namespace, [rule.resources for rule in role.rules]) == ("shop", [["grants"]])
    [subject] = binding.subjects
    assert (subject.kind, subject.name, subject.namespace) == ("ServiceAccount", "granter-cleanup", "granter-system")
    # What has no namespace takes a ClusterRole even so.
    role, job = in_shop[ClusterRole], in_shop[CronJob]
    assert isinstance(role, ClusterRole)
    assert [rule.resources for rule in role.rules] == [["removals"]]
    assert ClusterRoleBinding in in_shop
    assert isinstance(job, CronJob)
    command = job.spec.job_template.spec.template.spec.containers[0].command
    assert command[-3:] == ["--namespace=shop", "--phase=Failed", "--older-than=24h"]


def test_its_pods_are_not_taken_for_those_of_the_operator() -> None:
    operator = granter(RequestCleanup())
    job = of_cleanup(operator)[CronJob]
    assert isinstance(job, CronJob)
    labels = job.spec.job_template.spec.template.metadata.labels
    for selector in (disruption_budget(operator).spec.selector, network_policy(operator).spec.pod_selector):
        assert selector is not None
        assert not selector.match_labels.items() <= labels.items()


def test_its_files_are_a_directory_of_their_own() -> None:
    files = files_of(granter(RequestCleanup()))
    found = {path for path in files if path.startswith("config/cleanup/")}
    names = ("cron_job", "kustomization", "role", "role_binding", "service_account")
    assert found == {f"config/cleanup/{name}.yaml" for name in names}
    assert "- ../cleanup\n" in files["config/default/kustomization.yaml"]
    assert not found & files_of(Operator(name="granter", image="granter:1", kinds=KINDS)).keys()


async def test_a_server_accepts_it_where_only_restricted_pods_are(admin: Client, namespace: str) -> None:
    operator = Operator(name="granter", image="a", namespace=namespace, kinds=KINDS, cleanup=RequestCleanup())
    for obj in of_cleanup(operator).values():
        warnings: list[str] = []
        async with Client(admin.config, on_warning=warnings.append) as client:
            await client.create(obj, dry_run=True, field_validation="Strict")
        assert warnings == []


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            lambda: RequestCleanup(older_than=timedelta()),
            "requests are to be deleted that are older than 0:00:00: expected more than 0",
        ),
        (
            lambda: RequestCleanup(phases=["Pending", "Failed"]),
            "requests are to be deleted in the phases Pending, Failed: expected Completed, Failed",
        ),
        (
            lambda: RequestCleanup(phases=list[Phase]()),
            "requests are to be deleted in the phases none: expected Completed, Failed",
        ),
        (
            lambda: RequestCleanup(schedule="every hour"),
            'requests are to be deleted at "every hour": expected what a CronJob has, such as "0 * * * *"',
        ),
        (
            lambda: RequestCleanup(kinds=[Bridge]),
            "Bridge is not a kind of requests: its status is not a RequestStatus",
        ),
        (
            lambda: objects_of(Operator(name="a", image="a", kinds=[Bridge], cleanup=RequestCleanup())),
            "the operator a has a clean-up and no kind whose status is a RequestStatus: name kinds with "
            "RequestCleanup(kinds=[...])",
        ),
        (
            lambda: Operator(name="a" * 45, image="a", cleanup=RequestCleanup()),
            f'the operator is called "{"a" * 45}": with a clean-up, expected at most 44 characters, as names of Jobs '
            "are made of it",
        ),
    ],
)
def test_what_no_cron_job_can_do_is_refused(made: object, sentence: str) -> None:
    assert callable(made)
    with pytest.raises(ManifestError) as raised:
        made()
    assert str(raised.value) == sentence
