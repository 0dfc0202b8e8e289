"""The objects that make an API server call webhooks of a Service, the authorities that they have it trust, and the
Secret with these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

from msgspec import Struct

from kubewright.api.admissionregistration.v1 import (
    MutatingWebhookConfiguration,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.apiextensions.v1 import WebhookClientConfig as ConversionClientConfig
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object

ClientConfig: TypeAlias = WebhookClientConfig | ConversionClientConfig
RegistrationKind: TypeAlias = (
    type[MutatingWebhookConfiguration] | type[ValidatingWebhookConfiguration] | type[CustomResourceDefinition]
)


class RegistrationError(KubernetesError):
    """An object of the cluster has the API server call what is not served."""


class Registration(Struct, frozen=True):
    """The kind and the name of an object that has the API server call webhooks."""

    kind: RegistrationKind
    name: str

    def __str__(self) -> str:
        return f'{self.kind.__name__} "{self.name}"'


class RegisteredWebhook(Struct, frozen=True):
    """One webhook of such an object: how it is called there, and where it is."""

    name: str
    client_config: ClientConfig

    @property
    def path(self) -> str:
        """The path that the API server sends requests to."""
        service = self.client_config.service
        return (service.path if service is not None else None) or "/"


def secret_of(service: ObjectKey) -> ObjectKey:
    """The Secret with the certificates of a Service."""
    return ObjectKey(service.namespace, f"{service.name}-cert")


def entries_of(obj: Object, service: ObjectKey) -> list[RegisteredWebhook]:
    """The webhooks of an object that are those of the Service; others are none of our business."""
    match obj:
        case MutatingWebhookConfiguration() | ValidatingWebhookConfiguration():
            found = [RegisteredWebhook(f'the webhook "{each.name}"', each.client_config) for each in obj.webhooks]
        case CustomResourceDefinition(spec=spec) if (conversion := spec.conversion) is not None:
            webhook = conversion.webhook
            config = webhook.client_config if webhook is not None else None
            found = [RegisteredWebhook("spec.conversion", config)] if config is not None else []
        case _:
            found = []
    return [each for each in found if _is_of(each.client_config, service)]


def inject(obj: Object, service: ObjectKey, bundle: str) -> bool:
    """Have all webhooks of the Service in `obj` trusted by these authorities. True when that changes it."""
    changed = [each for each in entries_of(obj, service) if each.client_config.ca_bundle != bundle]
    for each in changed:
        each.client_config.ca_bundle = bundle
    return bool(changed)


def check_paths(registration: Registration, obj: Object, service: ObjectKey, served: Collection[str]) -> None:
    """Raise `RegistrationError` when an object has the API server call a path of the Service that is not served."""
    wrong = [each for each in entries_of(obj, service) if each.path not in served]
    if wrong:
        named = ", ".join(f"{each.name} names {each.path}" for each in wrong)
        raise RegistrationError(
            f"the {registration} has the API server call what is not served at the Service {service}: {named}; "
            f"served are {', '.join(sorted(served))}. Apply the manifest of this version, or serve these paths"
        )


def unnamed_paths(objects: Iterable[Object], service: ObjectKey, served: Collection[str]) -> list[str]:
    """The paths that are served and that no webhook of these objects names."""
    named = {each.path for obj in objects for each in entries_of(obj, service)}
    return sorted(set(served) - named)


def _is_of(config: ClientConfig, service: ObjectKey) -> bool:
    reference = config.service
    return reference is not None and (reference.namespace, reference.name) == (service.namespace, service.name)
