"""Answering the API server: admission webhooks, as typed functions or as plain handlers, and
conversion between versions; see `docs/webhooks.md`.
"""

from kubewright.webhook.admission import Review, defaults, handles, path_of, validates
from kubewright.webhook.configuration import (
    by_service,
    configuration_name,
    mutating_configuration,
    service_configurations,
    validating_configuration,
)
from kubewright.webhook.conversion import Spoke, Versions, converts
from kubewright.webhook.conversion_definition import definition_with_conversion
from kubewright.webhook.denial import Denied, FieldCause
from kubewright.webhook.entry import AdmissionWebhook, EntryOptions, MutatingOptions
from kubewright.webhook.review import AdmissionResponse, RequestKind, RequestResource, ReviewRequest
from kubewright.webhook.serving import serve_webhooks, versions_of, webhooks_of

__all__ = [
    "AdmissionResponse",
    "AdmissionWebhook",
    "Denied",
    "EntryOptions",
    "FieldCause",
    "MutatingOptions",
    "RequestKind",
    "RequestResource",
    "Review",
    "ReviewRequest",
    "Spoke",
    "Versions",
    "by_service",
    "configuration_name",
    "converts",
    "defaults",
    "definition_with_conversion",
    "handles",
    "mutating_configuration",
    "path_of",
    "serve_webhooks",
    "service_configurations",
    "validates",
    "validating_configuration",
    "versions_of",
    "webhooks_of",
]
