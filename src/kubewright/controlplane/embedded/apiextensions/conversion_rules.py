"""The rules of how a definition converts between its versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apiextensions.names import condition_holds, is_certificate
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    forbidden_field,
    invalid_value,
    not_supported,
    required,
)
from kubewright.controlplane.embedded.builtins.names import dns_subdomain, old_dns_label

_REVIEW_VERSIONS = ("v1", "v1beta1")


def check_choice(path: str, value: str, accepted: Sequence[str]) -> Iterator[FieldError]:
    """What is wrong with a value that has to be one of a few."""
    if not value:
        yield required(path)
    elif value not in accepted:
        yield not_supported(path, value, accepted)


def check_conversion(conversion: JSONObject, old: JSONObject | None) -> Iterator[FieldError]:
    """What is wrong with the conversion of a definition that was `old` before."""
    path = "spec.conversion"
    strategy = text(conversion, "strategy")
    yield from check_choice(f"{path}.strategy", strategy, ("None", "Webhook"))
    webhook = mapping(conversion, "webhook")
    config, versions = webhook.get("clientConfig"), items(webhook, "conversionReviewVersions")
    where = f"{path}.webhookClientConfig"
    if strategy != "Webhook":
        detail = "should not be set when strategy is not set to Webhook"
        if config is not None:
            yield forbidden_field(where, detail)
        if versions:
            yield forbidden_field(f"{path}.conversionReviewVersions", detail)
        return
    if not isinstance(config, dict):
        yield required(where, "required when strategy is set to Webhook")
    else:
        yield from _client_config(config, where)
        bundle = text(config, "caBundle")
        if bundle and not _may_be_broken(old) and not is_certificate(bundle):
            detail = "unable to load root certificates: unable to parse bytes as PEM block"
            yield invalid_value(f"{where}.caBundle", bundle, detail)
    yield from _review_versions(versions, f"{path}.conversionReviewVersions")


def _client_config(config: JSONObject, where: str) -> Iterator[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(where, "exactly one of url or service is required")
    elif isinstance(url, str):
        yield from _url(url, f"{where}.url")
    elif isinstance(service, dict):
        # The real server passes the two in the wrong order, so each is reported as the other.
        for name, reported in (("namespace", "name"), ("name", "namespace")):
            if not text(service, name):
                yield required(f"{where}.service.{reported}")
        port = service.get("port")
        if not isinstance(port, int) or not 1 <= port <= 65535:
            detail = "port is not valid: must be between 1 and 65535, inclusive"
            yield invalid_value(f"{where}.service.port", port, detail)
        yield from _url_path(text(service, "path"), f"{where}.service.path")


def _url_path(path: str, where: str) -> Iterator[FieldError]:
    if path in ("", "/"):
        return
    if path == "//":
        yield invalid_value(where, path, "segment[0] may not be empty")
        return
    if not path.startswith("/"):
        yield invalid_value(where, path, "must start with a '/'")
    for index, segment in enumerate(path[1:].removesuffix("/").split("/")):
        if not segment:
            yield invalid_value(where, path, f"segment[{index}] may not be empty")
            continue
        for wrong in dns_subdomain(segment):
            yield invalid_value(where, path, f"segment[{index}]: {wrong}")


def _url(url: str, where: str) -> Iterator[FieldError]:
    form = "; desired format: https://host[/path]"
    parts = urlsplit(url)
    if parts.scheme != "https":
        yield invalid_value(where, parts.scheme, f"'https' is the only allowed URL scheme{form}")
    if not parts.netloc.rpartition("@")[2]:
        yield invalid_value(where, "", f"host must be specified{form}")
    checks: tuple[tuple[str, str], ...] = (
        (parts.netloc.rpartition("@")[0], "user information is not permitted in the URL"),
        (parts.fragment, "fragments are not permitted in the URL"),
        (parts.query, "query parameters are not permitted in the URL"),
    )
    for found, detail in checks:
        if found:
            # A password in the URL is not repeated, as Go's redaction has it.
            yield invalid_value(where, found.partition(":")[0] if "user" in detail else found, detail)


def _may_be_broken(old: JSONObject | None) -> bool:
    """Whether an unreadable bundle is let through: nothing is served yet, or it was unreadable before."""
    if old is None or not condition_holds(old, "Established"):
        return True
    bundle = text(old, "spec", "conversion", "webhook", "clientConfig", "caBundle")
    return bool(bundle) and not is_certificate(bundle)


def _review_versions(versions: list[JSONValue], path: str) -> Iterator[FieldError]:
    if not versions:
        yield required(path)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid_value(f"{path}[{index}]", version, "duplicate version")
            continue
        for wrong in old_dns_label(str(version)):
            yield invalid_value(f"{path}[{index}]", version, wrong)
    if not any(version in _REVIEW_VERSIONS for version in versions):
        yield invalid_value(path, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")
