from __future__ import annotations

import base64

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apiextensions.conversion_rules import check_conversion


def webhook(config: JSONObject | None, *versions: str) -> JSONObject:
    inner: JSONObject = {"conversionReviewVersions": [*versions]}
    if config is not None:
        inner["clientConfig"] = config
    return {"strategy": "Webhook", "webhook": inner}


# Texts of a real kube-apiserver.
CASES: list[tuple[JSONObject, list[str]]] = [
    ({"strategy": "None"}, []),
    (webhook({"url": "https://x/y"}, "v1"), []),
    ({"strategy": "Foo"}, ['strategy: Unsupported value: "Foo": supported values: "None", "Webhook"']),
    (
        {"strategy": "Webhook"},
        [
            "webhookClientConfig: Required value: required when strategy is set to Webhook",
            "conversionReviewVersions: Required value",
        ],
    ),
    (
        webhook({}, "v2", "v2"),
        [
            "webhookClientConfig: Required value: exactly one of url or service is required",
            'conversionReviewVersions[1]: Invalid value: "v2": duplicate version',
            'conversionReviewVersions: Invalid value: ["v2","v2"]: must include at least one of v1, v1beta1',
        ],
    ),
    (
        {**webhook({"url": "https://x"}, "v1"), "strategy": "None"},
        [
            "webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
            "conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
        ],
    ),
    (
        webhook({"url": "http://x?a=b#c"}, "v1"),
        [
            "webhookClientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; "
            "desired format: https://host[/path]",
            'webhookClientConfig.url: Invalid value: "c": fragments are not permitted in the URL',
            'webhookClientConfig.url: Invalid value: "a=b": query parameters are not permitted in the URL',
        ],
    ),
    (
        webhook({"service": {"name": "", "namespace": "x", "port": 0, "path": "//a"}}, "v1"),
        [
            "webhookClientConfig.service.namespace: Required value",
            "webhookClientConfig.service.port: Invalid value: 0: "
            "port is not valid: must be between 1 and 65535, inclusive",
            'webhookClientConfig.service.path: Invalid value: "//a": segment[0] may not be empty',
        ],
    ),
]


@pytest.mark.parametrize(("conversion", "errors"), CASES)
def test_conversion_is_held_to_its_strategy(conversion: JSONObject, errors: list[str]) -> None:
    found = check_conversion(conversion, None)

    assert [str(error) for error in found] == [f"spec.conversion.{error}" for error in errors]


def test_a_password_in_a_url_is_not_repeated() -> None:
    (error,) = check_conversion(webhook({"url": "https://user:secret@x"}, "v1"), None)

    assert "secret" not in str(error)


def test_a_bundle_may_not_become_unreadable_once_the_definition_is_in_force() -> None:
    broken = webhook({"url": "https://x", "caBundle": base64.b64encode(b"x").decode()}, "v1")
    established: JSONObject = {"status": {"conditions": [{"type": "Established", "status": "True"}]}}

    assert list(check_conversion(broken, None)) == []
    assert list(check_conversion(broken, {"spec": {"conversion": broken}, **established})) == []
    (error,) = check_conversion(broken, established)
    assert error.field == "spec.conversion.webhookClientConfig.caBundle"
    assert error.detail == "unable to load root certificates: unable to parse bytes as PEM block"
