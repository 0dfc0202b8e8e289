"""The configuration objects that make an API server call webhooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from kubewright.api.admissionregistration.v1 import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.webhook.admission import AdmissionWebhook

WebhookT = TypeVar("WebhookT", MutatingWebhook, ValidatingWebhook)


def mutating_configuration(
    name: str,
    webhooks: Iterable[AdmissionWebhook[object]],
    client_config: Callable[[str], WebhookClientConfig],
    *,
    namespaces: LabelSelector | None = None,
) -> MutatingWebhookConfiguration:
    """The configuration of those webhooks that mutate. `client_config` has the URL or Service of a path."""
    entries = [_entry(MutatingWebhook, each, client_config, namespaces) for each in webhooks if each.is_mutating]
    return MutatingWebhookConfiguration(metadata=ObjectMeta(name=name), webhooks=entries)


def validating_configuration(
    name: str,
    webhooks: Iterable[AdmissionWebhook[object]],
    client_config: Callable[[str], WebhookClientConfig],
    *,
    namespaces: LabelSelector | None = None,
) -> ValidatingWebhookConfiguration:
    """The configuration of those webhooks that do not mutate."""
    entries = [_entry(ValidatingWebhook, each, client_config, namespaces) for each in webhooks if not each.is_mutating]
    return ValidatingWebhookConfiguration(metadata=ObjectMeta(name=name), webhooks=entries)


def _entry(
    kind: type[WebhookT],
    webhook: AdmissionWebhook[object],
    client_config: Callable[[str], WebhookClientConfig],
    namespaces: LabelSelector | None,
) -> WebhookT:
    return kind(
        name=name_of(webhook),
        client_config=client_config(webhook.path),
        rules=list(webhook.rules),
        failure_policy=webhook.failure_policy,
        side_effects=webhook.side_effects,
        timeout_seconds=webhook.timeout,
        admission_review_versions=["v1"],
        namespace_selector=namespaces,
    )


def name_of(webhook: AdmissionWebhook[object]) -> str:
    """The name of a webhook in its configuration, which users see in denials: a domain, made of the path."""
    return f"{webhook.path.strip('/').replace('/', '-').lower()}.kubewright.dev"
