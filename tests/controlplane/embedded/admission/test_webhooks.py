"""What webhooks note in the audit log. The rest is compared with a real server."""

from __future__ import annotations

import msgspec

from kubewright import Manager
from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.controlplane import ControlPlane
from kubewright.testing import LocalWebhooks, Running
from kubewright.webhook import Review, defaults, serve_webhooks, validates


@defaults(ConfigMap, name="defaults.example.com")
def add_color(review: Review[ConfigMap]) -> None:
    review.object.data["color"] = "red"
    review.audit_annotations["color"] = "was missing"


@validates(ConfigMap, name="checks.example.com", failure_policy="Ignore")
def check(review: Review[ConfigMap]) -> None:
    review.audit_annotations["verdict"] = "fine"


async def test_annotations_patches_and_ignored_failures_of_webhooks_are_in_the_audit_log(
    local_webhooks: LocalWebhooks, running: Running
) -> None:
    async with ControlPlane.embedded(controllers=[], nodes=0) as plane, plane.client() as client:
        manager = Manager(client, **local_webhooks.options)
        serve_webhooks(manager, add_color, check)
        async with running(manager), local_webhooks.installed(manager, client) as (mutating, validating):
            await client.create(ConfigMap(metadata=ObjectMeta(name="a", namespace="default")))
            noted = plane.audit.events[-1].annotations
            assert noted["defaults.example.com/color"] == "was missing"
            assert noted["checks.example.com/verdict"] == "fine"
            patch = msgspec.json.decode(noted["patch.webhook.admission.k8s.io/round_0_index_0"])
            assert patch["configuration"] == mutating.metadata.name
            assert patch["patch"] == [{"op": "add", "path": "/data", "value": {"color": "red"}}]

            validating.webhooks[0].client_config.url = "https://127.0.0.1:1/nothing"
            await client.update(validating)
            await client.create(ConfigMap(metadata=ObjectMeta(name="b", namespace="default")))
            failed = {name for name in plane.audit.events[-1].annotations if name.startswith("failed-open.")}
            assert failed == {"failed-open.validating.webhook.admission.k8s.io/round_0_index_0"}
