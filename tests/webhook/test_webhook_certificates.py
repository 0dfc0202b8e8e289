"""Webhooks by a Service, with certificates that the manager makes, on servers that call in over TLS.

The Service is an ExternalName of this machine, and each configuration has the port of a manager.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Self

import pytest
from cryptography import x509

from kubewright import Manager, Model, ObjectMeta, Resource, resource
from kubewright.api.admissionregistration.v1 import (
    MutatingWebhookConfiguration,
    RuleWithOperations,
    ValidatingWebhookConfiguration,
)
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.core.v1 import ConfigMap, Secret, Service, ServiceSpec
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import LabelSelector
from kubewright.api.rbac.v1 import ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject
from kubewright.api.time import clock_set_to
from kubewright.certificates import rotation
from kubewright.certificates.registrations import RegistrationError
from kubewright.certificates.rotation import CertificateSet, Lifetimes
from kubewright.client import Client
from kubewright.client.errors import APIError, Forbidden, InternalError, KubernetesError
from kubewright.client.wait import established
from kubewright.controlplane import ControlPlane
from kubewright.manager import PermissionsMissing
from kubewright.testing import Running
from kubewright.testing.namespaces import unique_name
from kubewright.webhook import (
    AdmissionResponse,
    Denied,
    Review,
    ReviewRequest,
    by_service,
    configuration_name,
    converts,
    defaults,
    definition_with_conversion,
    handles,
    serve_webhooks,
    service_configurations,
    validates,
    validating_configuration,
    webhooks_of,
)

HERE = "127.0.0.1:0"
CONFIG_MAPS = RuleWithOperations(
    api_groups=[""], api_versions=["v1"], operations=["CREATE"], resources=["configmaps"], scope="Namespaced"
)


@defaults(ConfigMap, on=["CREATE"])
def fill(review: Review[ConfigMap]) -> None:
    review.object.data["filled"] = "yes"


@validates(ConfigMap, on=["CREATE"])
def check(review: Review[ConfigMap]) -> None:
    if "bad" in review.object.data:
        raise Denied("this is bad")


def config_map(namespace: str, **data: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=unique_name("given"), namespace=namespace), data=data)


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(120):
        while not await holds():
            await asyncio.sleep(0.02)


@pytest.fixture
async def service(admin: Client, namespace: str) -> AsyncIterator[ObjectKey]:
    """A Service that is this machine; the configurations of its webhooks are removed after the test."""
    key = ObjectKey(namespace, "hooks")
    spec = ServiceSpec(type="ExternalName", external_name="localhost")
    await admin.create(Service(metadata=ObjectMeta(namespace=namespace, name=key.name), spec=spec))
    yield key
    for kind in (MutatingWebhookConfiguration, ValidatingWebhookConfiguration):
        await admin.delete(kind, configuration_name(key), missing_ok=True)


def only_in(namespace: str) -> LabelSelector:
    return LabelSelector(match_labels={"kubernetes.io/metadata.name": namespace})


async def apply_configurations(admin: Client, manager: Manager, service: ObjectKey) -> None:
    """As a manifest has them, without authorities."""
    webhooks, port = webhooks_of(manager), manager.ports["webhook"]
    for each in service_configurations(webhooks, service, port=port, namespaces=only_in(service.namespace)):
        await admin.apply(each)


async def test_webhooks_by_a_service_need_nothing_but_its_name(
    admin: Client, namespace: str, service: ObjectKey, running: Running
) -> None:
    manager = Manager(admin, webhook_address=HERE, webhook_service=f"{namespace}/hooks")
    serve_webhooks(manager, fill, check)
    assert "not serving" in (await manager.ready.failing())["webhooks"]
    async with running(manager):
        await manager.webhooks_served.wait()
        assert not await manager.ready.failing()
        await apply_configurations(admin, manager, service)

        async def calls() -> bool:
            """At first it does not, or does not trust them."""
            try:
                return "filled" in (await admin.create(config_map(namespace), dry_run=True)).data
            except InternalError:
                return False

        async def denies() -> bool:
            try:
                await admin.create(config_map(namespace, bad="yes"), dry_run=True)
            except Forbidden as error:
                return "denied the request: this is bad" in error.status.message
            except InternalError:
                return False
            return False

        await eventually(calls)
        await eventually(denies)
        # The manifest is applied again, and the authorities stay.
        before = await admin.get(MutatingWebhookConfiguration, configuration_name(service))
        await apply_configurations(admin, manager, service)
        after = await admin.get(MutatingWebhookConfiguration, configuration_name(service))
        assert after.webhooks[0].client_config.ca_bundle == before.webhooks[0].client_config.ca_bundle is not None
        # Somebody removes them.
        after.webhooks[0].client_config.ca_bundle = None
        await admin.patch(after)
        await eventually(calls)


class BuoySpec(Model):
    depth: int = 1


@resource("certificates.webhook.test/v1", plural="buoys")
class Buoy(Resource[BuoySpec, None]):
    """Marks a channel."""


class BuoyV1Beta1Spec(Model):
    fathoms: int = 1


@resource("certificates.webhook.test/v1beta1", kind="Buoy", plural="buoys", storage=False)
class BuoyV1Beta1(Resource[BuoyV1Beta1Spec, None]):
    """Marks a channel, in fathoms."""

    def to_hub(self) -> Buoy:
        return Buoy(spec=BuoySpec(depth=self.spec.fathoms))

    @classmethod
    def from_hub(cls, hub: Buoy) -> Self:
        return cls(spec=BuoyV1Beta1Spec(fathoms=hub.spec.depth))


async def test_the_definition_of_a_kind_that_is_converted_gets_the_authorities_and_the_server_converts(
    admin: Client, namespace: str, service: ObjectKey, running: Running
) -> None:
    manager, versions = (
        Manager(admin, webhook_address=HERE, webhook_service=str(service)),
        converts(Buoy, BuoyV1Beta1),
    )
    serve_webhooks(manager, versions)
    async with running(manager):
        await manager.webhooks_served.wait()
        definition = definition_with_conversion(versions, by_service(service, port=manager.ports["webhook"]))
        await admin.create(definition)
        try:
            await admin.wait_for(definition, established, timeout=120)
            given = BuoyV1Beta1(metadata=ObjectMeta(name="given", namespace=namespace), spec=BuoyV1Beta1Spec(fathoms=7))

            async def converted() -> bool:
                """It needs a moment to trust the webhook."""
                try:
                    return (await admin.create(given, dry_run=True)).spec.fathoms == 7
                except APIError:
                    return False

            await eventually(converted)
            found = await admin.get(CustomResourceDefinition, definition.metadata.name)
            assert found.spec.conversion is not None
            assert found.spec.conversion.webhook is not None
            assert found.spec.conversion.webhook.client_config is not None
            secret = await admin.get(Secret, ObjectKey(namespace, "hooks-cert"))
            assert found.spec.conversion.webhook.client_config.ca_bundle == secret.data["ca.crt"]
        finally:
            await admin.delete(definition)


class Clock:
    """Stands still, and is as late as a test wants: how long the test takes makes no difference."""

    def __init__(self) -> None:
        self._start = datetime.now(UTC)
        self.offset = timedelta()

    def __call__(self) -> datetime:
        return self._start + self.offset


class Load:
    """Requests without a pause, each of which calls all replicas; `errors` are those that failed."""

    def __init__(self, admin: Client, namespace: str) -> None:
        self._admin = admin
        self._object = config_map(namespace)
        self.admitted = 0
        self.errors: list[str] = []

    async def run(self) -> None:
        while True:
            try:
                await self._admin.create(self._object, dry_run=True)
                self.admitted += 1
            except KubernetesError as error:
                self.errors.append(str(error))

    async def more(self) -> None:
        """Return after some further ones."""
        goal = self.admitted + len(self.errors) + 5

        async def done() -> bool:
            return self.admitted + len(self.errors) >= goal

        await eventually(done)


class Replica:
    """A manager with a webhook that admits everything."""

    def __init__(self, client: Client, service: ObjectKey) -> None:
        self.manager = Manager(client, webhook_address=HERE, webhook_service=str(service))
        self.calls = 0

        @handles("/admit", rules=[CONFIG_MAPS])
        def admit(request: ReviewRequest) -> AdmissionResponse:
            self.calls += 1
            return AdmissionResponse()

        serve_webhooks(self.manager, admit)

    async def certificate(self) -> x509.Certificate:
        """What it serves with to those who connect now."""
        tls = ssl.create_default_context()
        tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
        _, writer = await asyncio.open_connection("127.0.0.1", self.manager.ports["webhook"], ssl=tls)
        found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return x509.load_der_x509_certificate(found)


def configured(replica: Replica, path: str, service: ObjectKey) -> ValidatingWebhookConfiguration:
    """The configuration of one webhook of one replica."""
    made = validating_configuration(
        configuration_name(service),
        [each for each in webhooks_of(replica.manager) if each.path == path],
        by_service(service, port=replica.manager.ports["webhook"]),
        namespaces=only_in(service.namespace),
    )
    made.webhooks[0].name = f"{unique_name('webhook')}.certificates.test"
    return made


@asynccontextmanager
async def under_load(admin: Client, namespace: str) -> AsyncIterator[Load]:
    load = Load(admin, namespace)
    task = asyncio.create_task(load.run())
    try:
        yield load
    finally:
        task.cancel()
        await asyncio.wait((task,))


async def test_certificates_and_authorities_of_two_replicas_are_rotated_without_a_failed_request(
    admin: Client, namespace: str, service: ObjectKey, running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Within the hour by which certificates are valid earlier than they were made: TLS goes by the machine's clock.
    times = Lifetimes(authority=timedelta(minutes=30), serving=timedelta(minutes=15))
    monkeypatch.setattr(rotation, "Lifetimes", lambda: times)
    clock, name = Clock(), configuration_name(service)
    replicas = [Replica(admin, service) for _ in range(2)]

    async def held() -> CertificateSet:
        return CertificateSet.of_secret((await admin.get(Secret, ObjectKey(namespace, "hooks-cert"))).data)

    async def at(minutes: float) -> None:
        """Set the clock, and have the replicas read it."""
        clock.offset = timedelta(minutes=minutes)
        secret = await admin.get(Secret, ObjectKey(namespace, "hooks-cert"))
        secret.metadata.annotations["minutes"] = str(minutes)
        await admin.patch(secret)

    async def all_serve() -> bool:
        wanted = (await held()).parsed_serving
        return all([await each.certificate() == wanted for each in replicas])

    async def all_trust() -> bool:
        found, wanted = await admin.get(ValidatingWebhookConfiguration, name), (await held()).bundle
        return all(each.client_config.ca_bundle == wanted for each in found.webhooks)

    async def seen_by_the_server() -> None:
        """A configuration is read as a whole: when a later change takes effect, an earlier one does."""
        found = await admin.get(ValidatingWebhookConfiguration, name)
        word = unique_name("seen")
        found.webhooks[0].name = f"{word}.certificates.test"
        await admin.patch(found)
        probe = config_map(namespace, probe="yes")

        async def is_seen() -> bool:
            try:
                await admin.create(probe, dry_run=True)
            except Forbidden as error:
                return word in error.status.message
            return False

        await eventually(is_seen)

    @handles("/probe", rules=[CONFIG_MAPS])
    def probe(request: ReviewRequest) -> AdmissionResponse:
        obj = request.object_as(ConfigMap)
        assert obj is not None
        return AdmissionResponse.denied("seen") if "probe" in obj.data else AdmissionResponse()

    serve_webhooks(replicas[0].manager, probe)
    serve_webhooks(replicas[1].manager, probe)
    with clock_set_to(clock):
        first, second = (running(each.manager) for each in replicas)
        async with first, second:
            for each in replicas:
                await each.manager.webhooks_served.wait()
            made = configured(replicas[0], "/probe", service)
            for each in replicas:
                made.webhooks += configured(each, "/admit", service).webhooks
            await admin.apply(made)
            await eventually(all_trust)
            await seen_by_the_server()

            async with under_load(admin, namespace) as load:
                await load.more()
                start = await held()
                assert await all_serve()

                # A serving certificate alone.
                await at(11)

                async def renewed() -> bool:
                    return (await held()).serving != start.serving

                await eventually(renewed)
                await eventually(all_serve)
                await load.more()
                assert (await held()).authorities == start.authorities

                # A new authority: first it is trusted, then it signs, then the old one goes.
                await at(21)

                async def announced() -> bool:
                    return len((await held()).authorities) == 2

                await eventually(announced)
                await eventually(all_trust)
                await seen_by_the_server()
                await load.more()
                assert (await held()).is_served_by_older
                await at(22.5)

                async def used() -> bool:
                    return not (await held()).is_served_by_older

                await eventually(used)
                await eventually(all_serve)
                await load.more()
                await at(37)

                async def alone() -> bool:
                    return len((await held()).authorities) == 1

                await eventually(alone)
                await eventually(all_trust)
                await seen_by_the_server()
                await load.more()
                assert start.authorities[0] not in (await held()).authorities

                # The Secret is deleted, and comes back as it was.
                before = await held()
                await admin.delete(Secret, ObjectKey(namespace, "hooks-cert"))

                async def restored() -> bool:
                    found = await admin.find(Secret, ObjectKey(namespace, "hooks-cert"))
                    return found is not None and found.data == before.to_secret()

                await eventually(restored)
                await load.more()
            assert load.errors == []
            assert all(each.calls >= load.admitted for each in replicas)


async def bound(admin: Client, user: str, rules: list[PolicyRule], namespace: str = "") -> None:
    """Permit a user what rules say, in a namespace or everywhere."""
    name = unique_name("operator")
    subjects = [Subject(kind="User", name=user, api_group="rbac.authorization.k8s.io")]
    if namespace:
        meta = ObjectMeta(name=name, namespace=namespace)
        await admin.create(Role(metadata=meta, rules=rules))
        reference = RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name=name)
        await admin.create(RoleBinding(metadata=meta, role_ref=reference, subjects=subjects))
    else:
        meta = ObjectMeta(name=name)
        await admin.create(ClusterRole(metadata=meta, rules=rules))
        reference = RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=name)
        await admin.create(ClusterRoleBinding(metadata=meta, role_ref=reference, subjects=subjects))


async def test_the_permissions_that_the_start_asks_for_are_enough_and_all_of_them_by_name(
    control_plane: ControlPlane, admin: Client, namespace: str, service: ObjectKey, running: Running
) -> None:
    user = unique_name("operator")
    configured = configuration_name(service)

    def manager(client: Client) -> Manager:
        made = Manager(client, webhook_address=HERE, webhook_service=str(service))
        serve_webhooks(made, check)
        return made

    async with control_plane.client(control_plane.add_user(user)) as client:
        with pytest.raises(PermissionsMissing) as missing:
            await manager(client).run()
        shown = str(missing.value)
        assert 'resourceNames: ["hooks-cert"]\n  verbs: ["get", "list", "watch", "patch"]' in shown
        assert f'resourceNames: ["{configured}"]\n  verbs: ["get", "list", "watch", "patch"]' in shown

        verbs = ["get", "list", "watch", "patch"]
        secrets = PolicyRule(api_groups=[""], resources=["secrets"], resource_names=["hooks-cert"], verbs=verbs)
        creating = PolicyRule(api_groups=[""], resources=["secrets"], verbs=["create"])
        configurations = PolicyRule(
            api_groups=["admissionregistration.k8s.io"],
            resources=["validatingwebhookconfigurations"],
            resource_names=[configured],
            verbs=verbs,
        )
        await bound(admin, user, [secrets, creating], namespace)
        await bound(admin, user, [configurations])
        ready = manager(client)

        async def permitted() -> bool:
            """A role takes effect a moment after it was made."""
            try:
                await client.find(Secret, ObjectKey(namespace, "hooks-cert"))
                await client.find(ValidatingWebhookConfiguration, configured)
            except Forbidden:
                return False
            return True

        await eventually(permitted)
        async with running(ready):
            await ready.webhooks_served.wait()
            await apply_configurations(admin, ready, service)

            async def trusted() -> bool:
                found = await admin.get(ValidatingWebhookConfiguration, configured)
                return found.webhooks[0].client_config.ca_bundle is not None

            await eventually(trusted)


async def test_a_start_is_refused_while_a_configuration_names_a_path_that_is_not_served(
    admin: Client, namespace: str, service: ObjectKey, running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    (made,) = service_configurations([check], service, namespaces=only_in(namespace))
    reference = made.webhooks[0].client_config.service
    assert reference is not None
    reference.path = "/validate-old"
    await admin.create(made)
    manager = Manager(admin, webhook_address=HERE, webhook_service=str(service))
    serve_webhooks(manager, check)
    with pytest.raises(RegistrationError) as refused:
        await manager.run()
    assert str(refused.value) == (
        f'the ValidatingWebhookConfiguration "hooks.{namespace}" has the API server call what is not served at the '
        f'Service {namespace}/hooks: the webhook "validate--v1-configmap.kubewright.dev" names /validate-old; served '
        "are /validate--v1-configmap. Apply the manifest of this version, or serve these paths"
    )
    # Another's webhook is its own business.
    reference.name = "other"
    await admin.apply(made, force=True)
    manager = Manager(admin, webhook_address=HERE, webhook_service=str(service))
    serve_webhooks(manager, check)
    async with running(manager):
        await manager.webhooks_served.wait()
    assert "does not call /validate--v1-configmap: no webhook of a configuration names it" in caplog.text
