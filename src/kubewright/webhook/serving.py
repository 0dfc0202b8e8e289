"""Putting webhooks on the server of a manager."""

from __future__ import annotations

from kubewright.api.admissionregistration.v1 import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kubewright.api.resources import resource_info
from kubewright.manager import Manager
from kubewright.webhook.configuration import configuration_name
from kubewright.webhook.conversion import PATH, Versions
from kubewright.webhook.conversion_endpoint import MAX_CONVERSION_SIZE, ConversionEndpoint
from kubewright.webhook.endpoint import ReviewEndpoint
from kubewright.webhook.entry import AdmissionWebhook


def serve_webhooks(manager: Manager, *webhooks: AdmissionWebhook[object] | Versions) -> None:
    """Serve webhooks while the manager runs, in every replica; it is ready only while it serves them.

    Address and certificate are options of the manager: `webhook_address`, by default ":9443", and `webhook_service`,
    `webhook_cert_dir` or `webhook_url`. The lower level is `manager.add_webhook`.
    """
    for each in webhooks:
        given: object = each
        if not isinstance(given, AdmissionWebhook | Versions):
            raise TypeError(
                f"serve_webhooks(manager, {given!r}): expected functions decorated with @defaults(Kind), "
                "@validates(Kind) or @handles(path), or converts(Hub, Spoke)"
            )
    if manager.webhook_url is not None and not manager.webhooks:
        from kubewright.webhook.development import DevelopmentRegistration  # few programs need it

        manager.add(DevelopmentRegistration(manager))
    for webhook in webhooks:
        if isinstance(webhook, Versions):
            _serve_conversion(manager, webhook)
        else:
            _serve_admission(manager, webhook)


def _serve_admission(manager: Manager, webhook: AdmissionWebhook[object]) -> None:
    for served in webhooks_of(manager):
        if served.path == webhook.path:
            raise ValueError(
                f"{served.function_name} and {webhook.function_name} are both for {webhook.path}: make one function "
                f'of them, or give one a path of its own: path="{webhook.path}-2"'
            )
    manager.add_webhook(webhook.path, ReviewEndpoint(webhook, manager.metrics))
    if manager.webhook_service is not None:
        from kubewright.certificates.registrations import Registration  # not needed in tests and in development

        kind = MutatingWebhookConfiguration if webhook.is_mutating else ValidatingWebhookConfiguration
        manager.add_registration(Registration(kind, configuration_name(manager.webhook_service)))


def _serve_conversion(manager: Manager, versions: Versions) -> None:
    _conversion(manager).add(versions)
    if manager.webhook_service is not None:
        from kubewright.api.apiextensions.v1 import CustomResourceDefinition
        from kubewright.certificates.registrations import Registration

        definition = f"{resource_info(versions.hub).plural}.{versions.group}"
        manager.add_registration(Registration(CustomResourceDefinition, definition))


def _conversion(manager: Manager) -> ConversionEndpoint:
    endpoint = manager.webhooks.get(PATH)
    if not isinstance(endpoint, ConversionEndpoint):
        endpoint = ConversionEndpoint(manager.metrics)
        manager.add_webhook(PATH, endpoint, max_body_size=MAX_CONVERSION_SIZE)
    return endpoint


def webhooks_of(manager: Manager) -> list[AdmissionWebhook[object]]:
    """The webhooks of admission that a manager serves."""
    return [handler.webhook for handler in manager.webhooks.values() if isinstance(handler, ReviewEndpoint)]


def versions_of(manager: Manager) -> list[Versions]:
    """The kinds of which a manager converts between versions."""
    endpoint = manager.webhooks.get(PATH)
    return [*endpoint.versions.values()] if isinstance(endpoint, ConversionEndpoint) else []
