"""How an operator extends the API: the definitions of its kinds, and the configurations of its webhooks.

Both come without authorities, which the operator itself adds (`kubewright.certificates`).
"""

from __future__ import annotations

from kubewright.api.admissionregistration.v1 import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
)
from kubewright.api.apiextensions.v1 import CustomResourceDefinition
from kubewright.api.meta import LabelSelector, LabelSelectorRequirement
from kubewright.api.resources import Object, resource_info
from kubewright.deployment.operator import Operator
from kubewright.manifest.crd import definition_of
from kubewright.webhook import (
    AdmissionWebhook,
    Versions,
    by_service,
    definition_with_conversion,
    service_configurations,
)


def definitions(operator: Operator) -> list[CustomResourceDefinition]:
    """One for each kind, by name, with all of its versions."""
    found: dict[str, CustomResourceDefinition] = {}
    for versions in operator.webhooks:
        if isinstance(versions, Versions):
            made = definition_with_conversion(versions, by_service(operator.webhook_service))
            found[made.metadata.name or ""] = made
    others: dict[str, dict[type[Object], None]] = {}
    for kind in operator.kinds:
        info = resource_info(kind)
        name = f"{info.plural}.{info.gvk.group}"
        if name not in found:
            others.setdefault(name, {})[kind] = None
    for name, types in others.items():
        found[name] = definition_of(*types)
    for made in found.values():
        made.metadata.labels = {**made.metadata.labels, **operator.labels}
    return [found[name] for name in sorted(found)]


def configurations(operator: Operator) -> list[MutatingWebhookConfiguration | ValidatingWebhookConfiguration]:
    """Those of its webhooks, which are called by a Service.

    Webhooks of kinds that are not its own are not called for objects in its namespace: while it does not run, they
    would keep its pods from being created.
    """
    webhooks = [each for each in operator.webhooks if isinstance(each, AdmissionWebhook)]
    own = {definition.spec.group for definition in definitions(operator)}
    made = service_configurations(webhooks, operator.webhook_service)
    for configuration in made:
        configuration.metadata.labels = operator.labels
        for entry in configuration.webhooks:
            if not own.issuperset(group for rule in entry.rules for group in rule.api_groups):
                _keep_out(entry, operator.namespace)
    return made


def _keep_out(entry: MutatingWebhook | ValidatingWebhook, namespace: str) -> None:
    selector = entry.namespace_selector or LabelSelector()
    elsewhere = LabelSelectorRequirement(key="kubernetes.io/metadata.name", operator="NotIn", values=[namespace])
    entry.namespace_selector = LabelSelector(
        match_labels=selector.match_labels, match_expressions=[*selector.match_expressions, elsewhere]
    )
