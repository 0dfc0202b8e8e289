from __future__ import annotations

from tests.webhook.boats import Boat, BoatV1Alpha1, BoatV1Beta1

from kubewright.api.admissionregistration.v1 import ServiceReference, WebhookClientConfig
from kubewright.api.codec import to_json
from kubewright.webhook import converts, definition_with_conversion


def test_the_definition_has_all_versions_and_names_the_webhook() -> None:
    def service(path: str) -> WebhookClientConfig:
        reference = ServiceReference(name="boats", namespace="sea", path=path, port=9443)
        return WebhookClientConfig(service=reference, ca_bundle="Q0E=")

    definition = definition_with_conversion(converts(Boat, BoatV1Alpha1, BoatV1Beta1), service)
    stored = {each.name: each.storage for each in definition.spec.versions}
    assert stored == {"v1": True, "v1beta1": False, "v1alpha1": False}
    assert to_json(definition.spec.conversion) == {
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": {
                "service": {"name": "boats", "namespace": "sea", "path": "/convert", "port": 9443},
                "caBundle": "Q0E=",
            },
            "conversionReviewVersions": ["v1"],
        },
    }
