"""The configuration objects that make an API server call webhooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubewright.api.admissionregistration.v1 import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.webhook.admission import AdmissionWebhook


def mutating_configuration(
    name: str,
    webhooks: Iterable[AdmissionWebhook[object]],
    client_config: Callable[[str], WebhookClientConfig],
    *,
    namespaces: LabelSelector | None = None,
) -> MutatingWebhookConfiguration:
    """The configuration of those webhooks that mutate. `client_config` has the URL or Service of a path."""
    return MutatingWebhookConfiguration(
        metadata=ObjectMeta(name=name),
        webhooks=[
            MutatingWebhook(
                name=name_of(each),
                client_config=client_config(each.path),
                rules=list(each.rules),
                failure_policy=each.failure_policy,
                side_effects=each.side_effects,
                timeout_seconds=each.timeout,
                admission_review_versions=["v1"],
                namespace_selector=namespaces,
            )
            for each in webhooks
            if each.is_mutating
        ],
    )


def validating_configuration(
    name: str,
    webhooks: Iterable[AdmissionWebhook[object]],
    client_config: Callable[[str], WebhookClientConfig],
    *,
    namespaces: LabelSelector | None = None,
) -> ValidatingWebhookConfiguration:
    """The configuration of those webhooks that do not mutate."""
    return ValidatingWebhookConfiguration(
        metadata=ObjectMeta(name=name),
        webhooks=[
            ValidatingWebhook(
                name=name_of(each),
                client_config=client_config(each.path),
                rules=list(each.rules),
                failure_policy=each.failure_policy,
                side_effects=each.side_effects,
                timeout_seconds=each.timeout,
                admission_review_versions=["v1"],
                namespace_selector=namespaces,
            )
            for each in webhooks
            if not each.is_mutating
        ],
    )


def name_of(webhook: AdmissionWebhook[object]) -> str:
    """The name of a webhook in its configuration, which users see in denials: a domain, made of the path."""
    return f"{webhook.path.strip('/').replace('/', '-').lower()}.kubewright.dev"
