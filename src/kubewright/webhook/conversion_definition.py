"""The definition of a kind whose versions a webhook converts."""

from __future__ import annotations

from collections.abc import Callable

from kubewright.api.admissionregistration.v1 import WebhookClientConfig
from kubewright.api.apiextensions.v1 import CustomResourceConversion, CustomResourceDefinition, WebhookConversion
from kubewright.api.apiextensions.v1 import WebhookClientConfig as ConversionClientConfig
from kubewright.api.codec import decode_model, encode
from kubewright.client import Client, MergePatch
from kubewright.manifest.crd import definition_of
from kubewright.webhook.conversion import PATH, Versions

_WITHOUT_CONVERSION = MergePatch({"spec": {"conversion": {"strategy": "None", "webhook": None}}})


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


async def stop_conversion(client: Client, definition: str) -> None:
    """Have an API server no longer call a webhook to convert objects.

    Were the definition to name one that is gone, namespaces with such objects could not be deleted.
    """
    await client.patch(CustomResourceDefinition, definition, _WITHOUT_CONVERSION)
