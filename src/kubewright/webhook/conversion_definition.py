"""The definition of a kind whose versions a webhook converts."""

from __future__ import annotations

from collections.abc import Callable

from kubewright.api.admissionregistration.v1 import WebhookClientConfig
from kubewright.api.apiextensions.v1 import CustomResourceConversion, CustomResourceDefinition, WebhookConversion
from kubewright.api.apiextensions.v1 import WebhookClientConfig as ConversionClientConfig
from kubewright.api.codec import decode_model, encode
from kubewright.manifest.crd import definition_of
from kubewright.webhook.conversion import PATH, Versions


def definition_with_conversion(
    versions: Versions, client_config: Callable[[str], WebhookClientConfig]
) -> CustomResourceDefinition:
    """The definition of a kind with all of its versions. `client_config` has the URL or Service of a path, as for the
    configurations of admission.
    """
    definition = definition_of(*versions.types)
    # The two structures of Kubernetes have the same fields.
    called = decode_model(ConversionClientConfig, encode(client_config(PATH)))
    webhook = WebhookConversion(client_config=called, conversion_review_versions=["v1"])
    definition.spec.conversion = CustomResourceConversion(strategy="Webhook", webhook=webhook)
    return definition
