"""Webhook configurations."""

from __future__ import annotations

from urllib.parse import urlsplit

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import duplicate, invalid_value, required
from kubewright.controlplane.embedded.builtins.admission_rules import (
    configuration_strategy,
    validate_match_conditions,
    validate_rule,
)
from kubewright.controlplane.embedded.builtins.label_selectors import validate_selector
from kubewright.controlplane.embedded.builtins.names import dns_subdomain
from kubewright.controlplane.embedded.builtins.values import Errors, number, objects, one_of, port

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
    errors += _client(mapping(webhook, "clientConfig"), f"{path}.clientConfig")
    return errors + validate_match_conditions(items(webhook, "matchConditions"), f"{path}.matchConditions")


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


WEBHOOK_CONFIGURATION = configuration_strategy(_validate, "webhooks")
