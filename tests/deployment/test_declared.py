"""An operator as its setup function declares it. On a server: it starts with nothing but what is deployed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from msgspec.structs import replace
from operators import builtins, chaospod, devbox, podmanager, user

from kubewright import Client, Manager, Model, Permission, Request, Resource, controller_for, resource
from kubewright.api.admissionregistration.v1 import ValidatingWebhookConfiguration
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.core.v1 import ConfigMap, EnvFromSource, EnvVar, EnvVarSource, SecretEnvSource, SecretKeySelector
from kubewright.api.rbac.v1 import Role
from kubewright.cli.used_permissions import granted
from kubewright.client.wait import Field
from kubewright.controlplane.embedded.plane import EmbeddedControlPlane
from kubewright.deployment import Operator, install_yaml, objects_of, with_setup
from kubewright.deployment.workload import deployment
from kubewright.manager.flags import parse_flags
from kubewright.manager.manager import GRACE, SetupError
from kubewright.manager.program import manager_of
from kubewright.manifest import ManifestError
from kubewright.testing import recorded_permissions
from kubewright.testing.fixtures import Running
from kubewright.testing.roles import compare_grants, exact_grants
from kubewright.webhook import AdmissionWebhook

PLAIN = Operator(name="it", image="it:1", namespace="harbour")


@pytest.mark.parametrize(
    ("setup", "kinds", "paths"),
    [
        (podmanager.setup, ["PodManager"], ["PodManager"]),
        (chaospod.setup, ["ChaosPod"], ["/mutate-", "/validate-"]),
        (builtins.setup, ["PodSet"], ["/mutate--v1-pod", "/validate--v1-pod"]),
        (
            user.setup,
            ["User", "Operationrequest", "Deleterequest"],
            ["/mutate-", "/validate-", "/mutate-", "/mutate-", "/validate-"],
        ),
        (devbox.setup, ["Devbox", "DevBoxRelease"], ["/validate-", "Devbox"]),
    ],
    ids=["podmanager", "chaospod", "builtins", "user", "devbox"],
)
async def test_kinds_and_webhooks_are_those_of_the_program(
    setup: Callable[[Manager], None], kinds: list[str], paths: list[str]
) -> None:
    operator = await with_setup(PLAIN, setup)
    assert [kind.__name__ for kind in operator.kinds] == kinds
    called = [each.path if isinstance(each, AdmissionWebhook) else each.kind for each in operator.webhooks]
    assert all(found.startswith(path) for found, path in zip(called, paths, strict=True))
    assert {(each.metadata.name, each.kind) for each in operator.roles} == {("it", "ClusterRole"), ("it", "Role")}


async def test_roles_are_those_that_the_flags_of_the_deployment_need() -> None:
    confined = await with_setup(replace(PLAIN, arguments=["--namespace=ops"]), chaospod.setup)
    assert [each.metadata.namespace for each in confined.roles if isinstance(each, Role)] == ["harbour", "ops"]
    lease = "coordination.k8s.io"
    assert [lease in rule.api_groups for rule in confined.roles[1].rules].count(True) == 2
    assert all(lease not in rule.api_groups for each in confined.roles[2:] for rule in each.rules)


async def test_objects_that_the_program_needs_are_deployed_with_it() -> None:
    needed = ConfigMap(metadata=PLAIN.metadata("-settings"))

    def setup(manager: Manager) -> None:
        chaospod.setup(manager)
        manager.require_objects(needed)

    given = ConfigMap(metadata=PLAIN.metadata("-given"))
    operator = await with_setup(replace(PLAIN, objects=[given]), setup)
    assert operator.objects == [given, needed]
    assert {each.key for each in objects_of(operator) if isinstance(each, ConfigMap)} == {given.key, needed.key}


def test_what_is_no_object_cannot_be_needed() -> None:
    with pytest.raises(TypeError, match="expected objects, such as a ClusterRole"):
        Manager.__new__(Manager).require_objects("a")  # type: ignore[arg-type]  # as a program without type checks


async def test_what_is_given_is_kept() -> None:
    role = Role(metadata=PLAIN.metadata("-more"), rules=[])
    given = replace(PLAIN, kinds=[chaospod.ChaosPod], roles=[role])
    operator = await with_setup(given, chaospod.setup, permissions=[Permission(ConfigMap, "get", namespace="harbour")])
    assert operator.kinds == [chaospod.ChaosPod]
    assert operator.roles[0] is role
    assert any("configmaps" in rule.resources for each in operator.roles for rule in each.rules)


@pytest.mark.parametrize(("grace", "expected"), [(120.0, 120.0), (5.0, GRACE), (None, GRACE)])
async def test_pods_have_the_grace_time_of_the_manager(grace: float | None, expected: float) -> None:
    operator = await with_setup(PLAIN, chaospod.setup, manager=partial(Manager, grace=grace))
    assert operator.grace == expected


async def test_the_options_of_a_program_are_its_arguments() -> None:
    class Options(Model):
        zone: str

    seen = []

    def setup(manager: Manager, options: Options) -> None:
        seen.append(options.zone)
        chaospod.setup(manager)

    await with_setup(replace(PLAIN, arguments=["--zone=east"]), setup, options=Options)
    assert seen == ["east"]
    with pytest.raises(ManifestError, match=r"of the operator it cannot be used: it: error: --zone .* is required"):
        await with_setup(PLAIN, setup, options=Options)


class Zoned(Model):
    zone: str = "anywhere"
    token: str = ""


@resource("certificates.example.com/v1", external=True)
class Certificate(Resource[Zoned, None]):
    """Defined by another operator."""


async def test_the_definition_of_an_external_kind_is_not_deployed() -> None:
    """It would replace that of its owner, without the fields that the type does not know, and go with the operator."""

    def setup(manager: Manager) -> None:
        controller_for(manager, Certificate).complete(ignore)

    async def ignore(request: Request) -> None: ...

    operator = await with_setup(PLAIN, setup)
    assert not any(isinstance(each, CustomResourceDefinition) for each in objects_of(operator))
    assert any("certificates" in rule.resources for each in operator.roles for rule in each.rules)


async def seen_with(operator: Operator) -> Zoned:
    """The options that a setup function gets."""
    seen: list[Zoned] = []

    def setup(manager: Manager, options: Zoned) -> None:
        seen.append(options)
        chaospod.setup(manager)

    await with_setup(operator, setup, options=Zoned)
    return seen[0]


async def test_what_is_set_in_this_environment_only_is_not_what_pods_run_with(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("IT_ZONE", "here")
    monkeypatch.setenv("IT_TOKEN", "s3cret")
    assert await seen_with(PLAIN) == Zoned()
    [message] = [record.getMessage() for record in caplog.records]
    assert message == (
        "ignored, as it is set in this environment, and not in that of the pods: IT_ZONE, IT_TOKEN; give it as a flag "
        "(--zone=...), which the Deployment shows, or in a Secret, with env_from (--env-from-secret NAME)"
    )
    caplog.clear()
    given = replace(PLAIN, arguments=["--zone", "east"], env=[EnvVar(name="IT_TOKEN", value="t")])
    assert await seen_with(given) == Zoned(zone="east", token="t")  # none
    assert not caplog.records


async def test_what_pods_get_from_a_secret_is_read_from_this_environment_and_not_rendered(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("IT_ZONE", "here")
    monkeypatch.setenv("IT_TOKEN", "s3cret")
    key = EnvVarSource(secret_key_ref=SecretKeySelector(name="it", key="token"))
    one = replace(PLAIN, env=[EnvVar(name="IT_TOKEN", value_from=key), EnvVar(name="IT_ZONE", value="east")])
    every = replace(PLAIN, env_from=[EnvFromSource(secret_ref=SecretEnvSource(name="it"))])
    assert await seen_with(one) == Zoned(zone="east", token="s3cret")  # none
    assert await seen_with(every) == Zoned(zone="here", token="s3cret")  # none
    assert not caplog.records
    for operator in (one, every):
        container = deployment(operator).spec.template.spec.containers[0]
        assert (container.env, container.env_from) == ([*operator.env], [*operator.env_from])
        assert "s3cret" not in install_yaml(operator)


async def test_a_required_option_that_only_this_environment_has_is_refused_without_its_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Needed(Model):
        token: str

    monkeypatch.setenv("IT_TOKEN", "s3cret")
    with pytest.raises(ManifestError, match=r"--token .* is required; ignored, .*: IT_TOKEN; give it") as found:
        await with_setup(PLAIN, lambda manager, options: None, options=Needed)
    assert "s3cret" not in str(found.value)


async def test_a_setup_that_needs_a_server_is_refused() -> None:
    async def setup(manager: Manager) -> None:
        await manager.live.get(ConfigMap, "it", namespace="harbour")

    with pytest.raises(SetupError, match="setup"):
        await with_setup(PLAIN, setup)


@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("--health-address=:9000", ":8081"),
        ("--metrics-address=127.0.0.1:8443", ":8443"),
        ("--webhook-address=:10250", ":9443"),
        ("--webhook-service=other", "harbour/it-webhook"),
    ],
)
async def test_a_program_does_not_serve_where_nothing_that_is_deployed_looks_for_it(
    argument: str, expected: str
) -> None:
    """Its probes would fail for ever, or its NetworkPolicy close the port."""
    found = f"the operator it cannot be used: {argument}: what is deployed with it expects {expected}$"
    with pytest.raises(ManifestError, match=found):
        await with_setup(replace(PLAIN, arguments=[argument]), chaospod.setup)
    await with_setup(replace(PLAIN, arguments=["--metrics-address=0"]), chaospod.setup)


async def test_an_operator_starts_with_nothing_but_what_is_deployed(
    embedded_control_plane: EmbeddedControlPlane, running: Running
) -> None:
    """The flags of its Deployment, and the roles of its ServiceAccount, which are what its requests show."""

    def setup(manager: Manager) -> None:
        podmanager.setup(manager)
        chaospod.setup(manager)

    operator = await with_setup(PLAIN, setup)
    async with embedded_control_plane.client() as admin:
        for obj in objects_of(operator):
            await admin.apply(obj, force=True)
        account = embedded_control_plane.add_user("system:serviceaccount:harbour:it", ["system:serviceaccounts"])
        arguments = deployment(operator).spec.template.spec.containers[0].args
        # Without a pod, it does not know its namespace, and shares the ports of this machine.
        here = ["--lease-namespace=harbour", "--webhook-service=harbour/it-webhook"]
        addresses = [f"--{name}-address=127.0.0.1:0" for name in ("health", "metrics", "webhook")]
        flags, _ = parse_flags("it", None, [*arguments, *here, *addresses])
        async with embedded_control_plane.client(account) as client:
            manager = manager_of(client, "it", flags, (), Manager)
            setup(manager)
            async with running(manager):
                await manager.elected.wait()
                await manager.webhooks_served.wait()
                await wait_until_trusted(admin)
    used = recorded_permissions(embedded_control_plane.audit.events, account.name)
    assert compare_grants(set(), granted(operator.roles), exact_grants(used.permissions)) == ""


async def wait_until_trusted(admin: Client) -> None:
    """The API server knows the certificates of its webhooks."""
    await admin.wait_for(
        ValidatingWebhookConfiguration,
        "it-webhook.harbour",
        lambda found: all(webhook.client_config.ca_bundle for webhook in found.webhooks),
    )
    trusted = Field("spec.conversion.webhook.clientConfig.caBundle").satisfies(bool, "is there")
    await admin.wait_for(CustomResourceDefinition, "podmanagers.apps.mycompany.com", trusted)
