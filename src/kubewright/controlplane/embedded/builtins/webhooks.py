"""Webhook configurations and admission policies. Whether a policy's expressions compile is not checked here."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import duplicate, invalid_value, required
from kubewright.controlplane.embedded.builtins.label_selectors import validate_selector
from kubewright.controlplane.embedded.builtins.names import dns_subdomain
from kubewright.controlplane.embedded.builtins.values import Errors, number, objects, one_of, port
from kubewright.controlplane.embedded.registry.resources import Strategy

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_URL = "desired format: https://host[/path]"


def _qualified_name(name: str, path: str) -> Errors:
    if not name:
        return [required(path)]
    if wrong := dns_subdomain(name):
        return [invalid_value(path, name, ",".join(wrong))]
    if name.count(".") < 2:
        complaint = "should be a domain with at least three segments separated by dots"
        return [invalid_value(path, name, complaint)]
    return []


def _validate(configuration: JSONObject) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for index, webhook in objects(configuration, "webhooks"):
        path = f"webhooks[{index}]"
        errors += _webhook(webhook, path)
        name = text(webhook, "name")
        if name and name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
    return errors


def _webhook(webhook: JSONObject, path: str) -> Errors:
    errors: Errors = []
    versions = items(webhook, "admissionReviewVersions")
    where = f"{path}.admissionReviewVersions"
    if not versions:
        errors.append(required(where, "must specify one of v1, v1beta1"))
    elif "v1" not in versions and "v1beta1" not in versions:
        errors.append(invalid_value(where, versions, "must include at least one of v1, v1beta1"))
    errors += _qualified_name(text(webhook, "name"), f"{path}.name")
    for index, rule in objects(webhook, "rules"):
        errors += validate_rule(rule, f"{path}.rules[{index}]")
    if "failurePolicy" in webhook:
        errors += one_of(f"{path}.failurePolicy", webhook["failurePolicy"], ("Fail", "Ignore"))
    if "matchPolicy" in webhook:
        errors += one_of(f"{path}.matchPolicy", webhook["matchPolicy"], ("Equivalent", "Exact"))
    effects = webhook.get("sideEffects")
    if effects is None:
        errors.append(required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun"))
    else:
        errors += one_of(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun"))
    timeout = webhook.get("timeoutSeconds")
    if timeout is not None and not 1 <= number(timeout) <= 30:
        complaint = "the timeout value must be between 1 and 30 seconds"
        errors.append(invalid_value(f"{path}.timeoutSeconds", timeout, complaint))
    errors += validate_selector(webhook.get("namespaceSelector"), f"{path}.namespaceSelector")
    errors += validate_selector(webhook.get("objectSelector"), f"{path}.objectSelector")
    if "reinvocationPolicy" in webhook:
        errors += one_of(f"{path}.reinvocationPolicy", webhook["reinvocationPolicy"], ("IfNeeded", "Never"))
    return errors + _client(mapping(webhook, "clientConfig"), f"{path}.clientConfig")


def _client(client: JSONObject, path: str) -> Errors:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if isinstance(url, str):
        return _url(url, f"{path}.url")
    where = f"{path}.service"
    errors = [required(f"{where}.{field}") for field in ("name", "namespace") if not text(service, field)]
    if "port" in mapping(service):
        errors += port(f"{where}.port", mapping(service)["port"])
    return errors


def _url(url: str, path: str) -> Errors:
    parts = urlsplit(url)
    errors: Errors = []
    if parts.scheme != "https":
        complaint = f"'https' is the only allowed URL scheme; {_URL}"
        errors.append(invalid_value(path, parts.scheme, complaint))
    if not parts.netloc:
        errors.append(invalid_value(path, parts.netloc, f"host must be specified; {_URL}"))
    if "@" in parts.netloc:
        errors.append(invalid_value(path, "", "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid_value(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid_value(path, parts.query, "query parameters are not permitted in the URL"))
    return errors


def validate_rule(rule: JSONObject, path: str) -> Errors:
    """The errors of a rule that selects requests."""
    errors: Errors = []
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = items(rule, field)
        if not values:
            errors.append(required(f"{path}.{field}"))
        if "*" in values and len(values) > 1:
            complaint = f"if '*' is present, must not specify other {what}"
            errors.append(invalid_value(f"{path}.{field}", values, complaint))
        if field == "apiVersions":
            errors += [required(f"{path}.{field}[{index}]") for index, value in enumerate(values) if value == ""]
    errors += _resources(items(rule, "resources"), f"{path}.resources")
    if "scope" in rule:
        errors += one_of(f"{path}.scope", rule["scope"], ("*", "Cluster", "Namespaced"))
    operations = items(rule, "operations")
    if not operations:
        errors.append(required(f"{path}.operations"))
    if "*" in operations and len(operations) > 1:
        complaint = "if '*' is present, must not specify other operations"
        errors.append(invalid_value(f"{path}.operations", operations, complaint))
    for index, operation in enumerate(operations):
        errors += one_of(f"{path}.operations[{index}]", operation, _OPERATIONS)
    return errors


def _resources(resources: list[JSONValue], path: str) -> Errors:
    if not resources:
        return [required(path)]
    errors: Errors = []
    if "*/*" in resources and len(resources) > 1:
        complaint = "if '*/*' is present, must not specify other resources"
        errors.append(invalid_value(path, resources, complaint))
    if "*" in resources and any("/" not in str(resource) and resource != "*" for resource in resources):
        complaint = "if '*' is present, must not specify other resources without subresources"
        errors.append(invalid_value(path, resources, complaint))
    return errors


def _strategy(validate: Callable[[JSONObject], Errors], content: str) -> Strategy:
    return Strategy(
        validate=validate,
        validate_update=lambda new, old: validate(new),
        has_generation=True,
        changes_generation=lambda new, old: new.get(content) != old.get(content),
        unconditional_update=False,
    )


WEBHOOK_CONFIGURATION = _strategy(_validate, "webhooks")


def _validate_policy(policy: JSONObject) -> Errors:
    spec = mapping(policy, "spec")
    errors: Errors = []
    if "failurePolicy" in spec:
        errors += one_of("spec.failurePolicy", spec["failurePolicy"], ("Fail", "Ignore"))
    constraints = spec.get("matchConstraints")
    if not isinstance(constraints, dict):
        return [*errors, required("spec.matchConstraints")]
    path = "spec.matchConstraints"
    for field in ("namespaceSelector", "objectSelector"):
        errors += validate_selector(constraints.get(field), f"{path}.{field}")
    rules = list(objects(constraints, "resourceRules"))
    if not rules:
        errors.append(required(f"{path}.resourceRules"))
    for index, rule in rules:
        errors += validate_rule(rule, f"{path}.resourceRules[{index}]")
    return errors


def _validate_validating_policy(policy: JSONObject) -> Errors:
    errors = _validate_policy(policy)
    spec = mapping(policy, "spec")
    if not items(spec, "validations") and not items(spec, "auditAnnotations"):
        complaint = "validations or auditAnnotations must contain at least one item"
        errors += [required(f"spec.{field}", complaint) for field in ("validations", "auditAnnotations")]
    return errors


VALIDATING_POLICY = _strategy(_validate_validating_policy, "spec")
MUTATING_POLICY = _strategy(_validate_policy, "spec")


def _validate_binding(binding: JSONObject) -> Errors:
    name = text(binding, "spec", "policyName")
    if not name:
        return [required("spec.policyName")]
    return [invalid_value("spec.policyName", name, wrong) for wrong in dns_subdomain(name)]


def _validate_validating_binding(binding: JSONObject) -> Errors:
    errors = _validate_binding(binding)
    actions = items(binding, "spec", "validationActions")
    path = "spec.validationActions"
    if not actions:
        errors.append(required(path))
    for index, action in enumerate(actions):
        errors += one_of(f"{path}[{index}]", action, ("Audit", "Deny", "Warn"))
        if action in actions[:index]:
            errors.append(duplicate(f"{path}[{index}]", action))
    if "Deny" in actions and "Warn" in actions:
        complaint = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        errors.append(invalid_value(path, actions, complaint))
    return errors


VALIDATING_POLICY_BINDING = _strategy(_validate_validating_binding, "spec")
MUTATING_POLICY_BINDING = _strategy(_validate_binding, "spec")
