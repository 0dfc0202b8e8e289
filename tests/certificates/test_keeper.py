"""Keeping certificates in a Secret, and trusted by registrations: in virtual time, on a server."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from kubewright.api.admissionregistration.v1 import (
    ServiceReference,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from kubewright.api.apiextensions.v1 import (
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
    CustomResourceValidation,
    JSONSchemaProps,
    WebhookConversion,
)
from kubewright.api.apiextensions.v1 import ServiceReference as ConversionService
from kubewright.api.apiextensions.v1 import WebhookClientConfig as ConversionConfig
from kubewright.api.core.v1 import Secret
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.api.time import clock_set_to, exact_now
from kubewright.certificates.issuing import KeyPair
from kubewright.certificates.keeper import CertificateKeeper
from kubewright.certificates.registrations import Registration
from kubewright.certificates.rotation import CertificateSet, Lifetimes
from kubewright.client import Client
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.testing.virtual_time import virtual

SERVICE = ObjectKey("default", "lamp-webhook")
SECRET = ObjectKey("default", "lamp-webhook-cert")
LAMPS = Registration(ValidatingWebhookConfiguration, "lamp-webhook.default")
BULBS = Registration(CustomResourceDefinition, "bulbs.certificates.test")
SHORT = Lifetimes(authority=timedelta(hours=30), serving=timedelta(hours=9))


@asynccontextmanager
async def server() -> AsyncIterator[Client]:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        yield client


class Replica:
    """One that keeps certificates, and the last it was to serve with."""

    def __init__(self, client: Client, *registrations: Registration) -> None:
        self.served: list[KeyPair] = []
        self.keeper = CertificateKeeper(client, SERVICE, registrations, self.served.append, SHORT)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.keeper.run())
        try:
            await self.keeper.serves.wait()
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """In virtual time, where a pause takes none."""
    async with asyncio.timeout(24 * 3600):
        while not await holds():
            await asyncio.sleep(0.1)


async def held(client: Client) -> CertificateSet:
    return CertificateSet.of_secret((await client.get(Secret, SECRET)).data)


@asynccontextmanager
async def changes(client: Client) -> AsyncIterator[AsyncIterator[CertificateSet]]:
    """The present set, and each that follows."""
    where = {"metadata.name": SECRET.name}

    async def sets() -> AsyncGenerator[CertificateSet, None]:
        while True:
            async with client.watch(Secret, namespace=SECRET.namespace, fields=where) as events:
                async for event in events:
                    if event.type in ("ADDED", "MODIFIED"):
                        yield CertificateSet.of_secret(event.object.data)

    generator = sets()
    try:
        yield generator
    finally:
        await generator.aclose()


def configuration(*services: str | None, bundle: str | None = None) -> ValidatingWebhookConfiguration:
    """Of webhooks of these Services; None has a URL."""
    webhooks = []
    for index, name in enumerate(services):
        config = WebhookClientConfig(url="https://127.0.0.1:1/x", ca_bundle=bundle)
        if name is not None:
            service = ServiceReference(namespace="default", name=name, path="/x")
            config = WebhookClientConfig(service=service, ca_bundle=bundle)
        webhooks.append(
            ValidatingWebhook(
                name=f"w{index}.certificates.test",
                client_config=config,
                side_effects="None",
                admission_review_versions=["v1"],
            )
        )
    return ValidatingWebhookConfiguration(metadata=ObjectMeta(name=LAMPS.name), webhooks=webhooks)


def bundles(obj: ValidatingWebhookConfiguration) -> list[str | None]:
    return [each.client_config.ca_bundle for each in obj.webhooks]


async def trusted(client: Client) -> list[str | None]:
    return bundles(await client.get(ValidatingWebhookConfiguration, LAMPS.name))


@virtual
async def test_replicas_that_start_together_share_one_set_and_all_serve_with_it() -> None:
    async with server() as client:
        replicas = [Replica(client) for _ in range(4)]
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(each.keeper.run()) for each in replicas]
            await asyncio.gather(*(each.keeper.serves.wait() for each in replicas))
            serving = (await held(client)).serving

            async def all_serve() -> bool:
                return all(each.served[-1] == serving for each in replicas)

            await eventually(all_serve)
            for each in running:
                each.cancel()
        secret = await client.get(Secret, SECRET)
        assert secret.type == "kubernetes.io/tls"
        assert sorted(secret.data) == ["ca.crt", "ca.key", "tls.crt", "tls.key"]


@virtual
async def test_the_authorities_get_into_every_webhook_of_the_service_and_into_no_other() -> None:
    async with server() as client:
        foreign = b64encode(b"foreign").decode()
        replica = Replica(client, LAMPS)
        async with replica.running():  # a configuration that is not there yet is no error
            await client.create(configuration("lamp-webhook", "other", None, "lamp-webhook", bundle=foreign))
            ours = (await held(client)).bundle

            async def injected() -> bool:
                return await trusted(client) == [ours, foreign, foreign, ours]

            await eventually(injected)
            # One write put them in, and nothing writes any more.
            await asyncio.sleep(7200)
            assert (await client.get(ValidatingWebhookConfiguration, LAMPS.name)).metadata.generation == 2


@pytest.mark.parametrize("tampered", [None, b64encode(b"foreign").decode()])
def test_what_was_changed_or_removed_is_put_back_with_one_write(tampered: str | None) -> None:
    @virtual
    async def run() -> None:
        async with server() as client:
            await client.create(configuration("lamp-webhook", "other"))
            replicas = [Replica(client, LAMPS) for _ in range(2)]
            async with replicas[0].running(), replicas[1].running():
                ours = (await held(client)).bundle

                async def injected() -> bool:
                    return await trusted(client) == [ours, None]

                await eventually(injected)
                found = await client.get(ValidatingWebhookConfiguration, LAMPS.name)
                before = found.metadata.generation or 0
                found.webhooks[0].client_config.ca_bundle = tampered
                found.webhooks[1].failure_policy = "Ignore"
                await client.patch(found)
                await eventually(injected)
                await asyncio.sleep(7200)
                found = await client.get(ValidatingWebhookConfiguration, LAMPS.name)
                assert found.metadata.generation == before + 2
                assert found.webhooks[1].failure_policy == "Ignore", "what else was changed stays"

    run()


@virtual
async def test_a_definition_whose_conversion_is_by_the_service_gets_the_authorities() -> None:
    def version(name: str, is_stored: bool) -> CustomResourceDefinitionVersion:
        schema = CustomResourceValidation(open_apiv3_schema=JSONSchemaProps(type="object"))
        return CustomResourceDefinitionVersion(name=name, served=True, storage=is_stored, schema=schema)

    config = ConversionConfig(service=ConversionService(namespace="default", name="lamp-webhook", path="/convert"))
    definition = CustomResourceDefinition(
        metadata=ObjectMeta(name=BULBS.name),
        spec=CustomResourceDefinitionSpec(
            group="certificates.test",
            scope="Namespaced",
            names=CustomResourceDefinitionNames(kind="Bulb", plural="bulbs"),
            versions=[version("v1", True), version("v1beta1", False)],
            conversion=CustomResourceConversion(
                strategy="Webhook", webhook=WebhookConversion(client_config=config, conversion_review_versions=["v1"])
            ),
        ),
    )
    async with server() as client:
        await client.create(definition)
        async with Replica(client, BULBS).running():

            async def injected() -> bool:
                conversion = (await client.get(CustomResourceDefinition, BULBS.name)).spec.conversion
                assert conversion is not None
                assert conversion.webhook is not None
                assert conversion.webhook.client_config is not None
                return conversion.webhook.client_config.ca_bundle == (await held(client)).bundle

            await eventually(injected)


@pytest.mark.parametrize("damage", ["deleted", "emptied", "ca.key", "tls.crt", "tls.key"])
def test_a_set_in_use_is_restored_when_the_secret_is_deleted_or_damaged(
    damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    @virtual
    async def run() -> None:
        async with server() as client:
            replica = Replica(client)
            async with replica.running():
                before = await client.get(Secret, SECRET)
                if damage == "deleted":
                    await client.delete(Secret, SECRET)
                else:
                    found = await client.get(Secret, SECRET)
                    found.data = {} if damage == "emptied" else {**found.data, damage: b64encode(b"x").decode()}
                    if damage == "emptied":
                        found.data = {"tls.crt": "", "tls.key": ""}  # which the type asks for
                    await client.update(found)

                async def restored() -> bool:
                    found = await client.find(Secret, SECRET)
                    return found is not None and found.data == before.data

                await eventually(restored)
            assert len(replica.served) == 1, "serving went on as it was"

    with caplog.at_level(logging.DEBUG):
        run()
    assert "PRIVATE" not in caplog.text


@virtual
async def test_a_secret_that_a_manifest_has_made_is_filled_and_a_damaged_one_replaced() -> None:
    async with server() as client:
        secret = await client.create(
            Secret(metadata=ObjectMeta(namespace="default", name=SECRET.name), data={"note": b64encode(b"x").decode()})
        )
        async with Replica(client).running():
            filled = await client.get(Secret, SECRET)
        assert filled.metadata.uid == secret.metadata.uid
        assert filled.data["note"]
        filled.data["ca.crt"] = b64encode(b"x").decode()
        await client.update(filled)
        async with Replica(client).running():
            assert (await held(client)).serving is not None


@virtual
async def test_a_rotation_goes_on_where_a_replica_was_killed() -> None:
    """At each of its steps, and without a moment in which a certificate is served that is not trusted."""
    async with server() as client:
        await client.create(configuration("lamp-webhook"))
        seen: list[tuple[int, bool]] = []
        while len(seen) < 4:
            replica = Replica(client, LAMPS)
            async with replica.running(), asyncio.timeout(90 * 3600), changes(client) as sets:
                async for present in sets:
                    state = len(present.authorities), present.is_served_by_older
                    if seen and state == seen[-1]:
                        continue
                    if state == (2, False):
                        assert await trusted(client) == [present.bundle]
                    seen.append(state)
                    break
        assert seen == [(1, False), (2, True), (2, False), (1, False)]


@virtual
async def test_a_certificate_of_the_new_authority_waits_until_all_registrations_have_had_it_for_a_minute() -> None:
    async with server() as client:
        await client.create(configuration("lamp-webhook"))
        async with Replica(client, LAMPS).running():
            first = await held(client)

            async def announced() -> bool:
                (bundle,) = await trusted(client)
                return len((await held(client)).authorities) == 2 and bundle == (await held(client)).bundle

            async def used() -> bool:
                return not (await held(client)).is_served_by_older

            async with asyncio.timeout(90 * 3600), changes(client) as sets:
                async for present in sets:
                    if len(present.authorities) == 2:
                        break
            await eventually(announced)
            injected_at = exact_now()
            assert exact_now() - first.parsed_authorities[0].not_valid_before_utc >= timedelta(hours=20)
            # Somebody applies the manifest, and it begins again.
            await asyncio.sleep(40)
            found = await client.get(ValidatingWebhookConfiguration, LAMPS.name)
            found.webhooks[0].client_config.ca_bundle = None
            await client.patch(found)
            await eventually(used)
            assert exact_now() - injected_at >= timedelta(seconds=100)


@virtual
async def test_a_replica_whose_clock_is_days_ahead_does_not_write_all_the_time() -> None:
    """Each replaces what is expired, or not valid yet, by its own clock."""
    async with server() as client:
        loop, start = asyncio.get_running_loop(), exact_now()
        begun = loop.time()
        async with Replica(client).running():
            before = await client.get(Secret, SECRET)
            with clock_set_to(lambda: start + timedelta(days=30, seconds=loop.time() - begun)):
                async with Replica(client).running():
                    await asyncio.sleep(100)
            after = await client.get(Secret, SECRET)
            assert 2 <= revision(after) - revision(before) <= 100


def revision(obj: Secret) -> int:
    return int(obj.metadata.resource_version or 0)


@virtual
async def test_what_cannot_be_written_does_not_keep_the_rest_from_being_trusted() -> None:
    other = Registration(ValidatingWebhookConfiguration, "lamps.other")
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        refused = {other.name}
        plane.faults.fail(lambda target: target.verb == "patch" and target.name in refused, code=403, times=None)
        unwritable = configuration("lamp-webhook")
        unwritable.metadata.name = other.name
        await client.create(unwritable)
        await client.create(configuration("lamp-webhook"))
        async with Replica(client, other, LAMPS).running():
            ours = (await held(client)).bundle

            async def injected() -> bool:
                return await trusted(client) == [ours]

            await eventually(injected)
            refused.add(SECRET.name)
            damaged = await client.get(Secret, SECRET)
            damaged.data["ca.key"] = b64encode(b"x").decode()
            await client.update(damaged)
            found = await client.get(ValidatingWebhookConfiguration, LAMPS.name)
            found.webhooks[0].client_config.ca_bundle = None
            await client.update(found)
            await eventually(injected)


@virtual
async def test_a_replica_whose_watch_fails_neither_puts_back_older_authorities_nor_asks_all_the_time() -> None:
    async with ControlPlane.embedded(controllers=(), nodes=0) as plane, plane.client() as client:
        await client.create(configuration("lamp-webhook"))
        reads = 0

        def is_read(target: Target) -> bool:
            nonlocal reads
            reads += target.resource == "secrets" and target.verb == "get"
            return reads > 200  # time does not go on while there is always something to do

        def is_watch(target: Target) -> bool:
            return target.resource == "secrets" and target.verb in ("list", "watch")

        async with Replica(client, LAMPS).running():
            ours = (await held(client)).bundle

            async def injected() -> bool:
                return await trusted(client) == [ours]

            await eventually(injected)
            plane.faults.fail(is_watch, code=503, times=None)
            plane.faults.cut_open_watches(is_watch)
            plane.faults.fail(is_read, times=None)
            changed = await client.get(Secret, SECRET)
            changed.data["note"] = b64encode(b"x").decode()
            await client.update(changed)
            found = await client.get(ValidatingWebhookConfiguration, LAMPS.name)
            found.webhooks[0].client_config.ca_bundle = None
            await client.update(found)
            await asyncio.sleep(60)
            assert reads < 50
            assert await trusted(client) == [None]
            plane.faults.clear()
            await eventually(injected)
