"""The configuration objects that make an API server call webhooks.

By a Service, as manifests have them and `client.apply` takes them, without authorities: those are added, and kept, by
the manager that has the Service as its `webhook_service` (`kubewright.certificates`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from kubewright.api.admissionregistration.v1 import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ServiceReference,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
    WebhookClientConfig,
)
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta
from kubewright.webhook.entry import AdmissionWebhook

WebhookT = TypeVar("WebhookT", MutatingWebhook, ValidatingWebhook)


def mutating_configuration(
    name: str,
    webhooks: Iterable[AdmissionWebhook[object]],
    client_config: Callable[[str], WebhookClientConfig],
    *,
    namespaces: LabelSelector | None = None,
) -> MutatingWebhookConfiguration:
    """The configuration of those webhooks that mutate. `client_config` has the URL or Service of a path."""
    mutating = [each for each in webhooks if each.is_mutating]
    entries = [_entry(MutatingWebhook, each, client_config, namespaces) for each in mutating]
    for entry, webhook in zip(entries, mutating, strict=True):
        entry.reinvocation_policy = webhook.reinvocation_policy
    _check_names(name, entries)
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
    _check_names(name, entries)
    return ValidatingWebhookConfiguration(metadata=ObjectMeta(name=name), webhooks=entries)


def configuration_name(service: ObjectKey) -> str:
    """The name of the configurations that call webhooks by a Service, and whose authorities its manager keeps."""
    return f"{service.name}.{service.namespace}"


def by_service(service: ObjectKey, *, port: int | None = None) -> Callable[[str], WebhookClientConfig]:
    """The `client_config` of a Service; its port is 443 unless given."""

    def client_config(path: str) -> WebhookClientConfig:
        reference = ServiceReference(namespace=service.namespace, name=service.name, path=path, port=port)
        return WebhookClientConfig(service=reference)

    return client_config


def service_configurations(
    webhooks: Iterable[AdmissionWebhook[object]],
    service: ObjectKey,
    *,
    port: int | None = None,
    namespaces: LabelSelector | None = None,
) -> list[MutatingWebhookConfiguration | ValidatingWebhookConfiguration]:
    """The configurations that call these webhooks by a Service: none, one, or one of each kind."""
    return configurations(configuration_name(service), webhooks, by_service(service, port=port), namespaces=namespaces)


def configurations(
    name: str,
    webhooks: Iterable[AdmissionWebhook[object]],
    client_config: Callable[[str], WebhookClientConfig],
    *,
    namespaces: LabelSelector | None = None,
) -> list[MutatingWebhookConfiguration | ValidatingWebhookConfiguration]:
    """The configurations that call these webhooks: none, one, or one of each kind."""
    all_of_them = list(webhooks)
    made: list[MutatingWebhookConfiguration | ValidatingWebhookConfiguration] = [
        mutating_configuration(name, all_of_them, client_config, namespaces=namespaces),
        validating_configuration(name, all_of_them, client_config, namespaces=namespaces),
    ]
    return [each for each in made if each.webhooks]


def _entry(
    kind: type[WebhookT],
    webhook: AdmissionWebhook[object],
    client_config: Callable[[str], WebhookClientConfig],
    namespaces: LabelSelector | None,
) -> WebhookT:
    return kind(
        name=webhook.name,
        client_config=client_config(webhook.path),
        rules=list(webhook.rules),
        failure_policy=webhook.failure_policy,
        match_policy=webhook.match_policy,
        match_conditions=list(webhook.match_conditions),
        side_effects=webhook.side_effects,
        timeout_seconds=webhook.timeout,
        admission_review_versions=["v1"],
        object_selector=webhook.object_selector,
        namespace_selector=_both(webhook.namespace_selector, namespaces),
    )


def _both(one: LabelSelector | None, other: LabelSelector | None) -> LabelSelector | None:
    """The selector of what both select."""
    if one is None or other is None:
        return one or other
    equal = [
        LabelSelectorRequirement(key=key, operator="In", values=[value]) for key, value in other.match_labels.items()
    ]
    return LabelSelector(
        match_labels=one.match_labels, match_expressions=[*one.match_expressions, *other.match_expressions, *equal]
    )


def _check_names(configuration: str, entries: Sequence[MutatingWebhook | ValidatingWebhook]) -> None:
    names = [each.name for each in entries]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f'two webhooks of the configuration "{configuration}" have the name "{name}": give one another name='
            )
