"""When a webhook is called, as the decorator says it and as its entry in a configuration does."""

from __future__ import annotations

from typing import Any

import pytest
from tests.webhook.reviews import Kettle

from kubewright.api.admissionregistration.v1 import MatchCondition, WebhookClientConfig
from kubewright.api.meta import LabelSelector, LabelSelectorRequirement
from kubewright.webhook import (
    AdmissionWebhook,
    Review,
    defaults,
    handles,
    mutating_configuration,
    validates,
    validating_configuration,
)


def function(review: Review[Kettle]) -> None: ...


def client_config(path: str) -> WebhookClientConfig:
    return WebhookClientConfig(url=f"https://here{path}")


def test_what_a_decorator_says_is_in_the_entry() -> None:
    options: Any = {
        "name": "kettles.kitchen.example.com",
        "object_selector": "size=big,colour in (red,blue),!broken",
        "namespace_selector": {"kitchen": True},
        "match_conditions": {"not-a-node": "!request.userInfo.username.startsWith('system:node:')", "cooks": "true"},
        "match_policy": "Exact",
        "failure_policy": "Ignore",
        "side_effects": "NoneOnDryRun",
        "timeout": 3,
    }
    checking = validates(Kettle, on=["DELETE"], **options)(function)
    changing = defaults(Kettle, reinvocation_policy="IfNeeded", **options)(function)
    (mutating,) = mutating_configuration("hooks", [checking, changing], client_config).webhooks
    (validating,) = validating_configuration("hooks", [checking, changing], client_config).webhooks
    assert mutating.reinvocation_policy == "IfNeeded"
    assert (mutating.client_config.url, validating.client_config.url) == (
        f"https://here{changing.path}",
        f"https://here{checking.path}",
    )
    for entry in (mutating, validating):
        assert entry.name == "kettles.kitchen.example.com"
        assert entry.object_selector == LabelSelector(
            match_labels={"size": "big"},
            match_expressions=[
                LabelSelectorRequirement(key="broken", operator="DoesNotExist"),
                LabelSelectorRequirement(key="colour", operator="In", values=["blue", "red"]),
            ],
        )
        assert entry.namespace_selector == LabelSelector(
            match_expressions=[LabelSelectorRequirement(key="kitchen", operator="Exists")]
        )
        assert entry.match_conditions == [
            MatchCondition(name="not-a-node", expression="!request.userInfo.username.startsWith('system:node:')"),
            MatchCondition(name="cooks", expression="true"),
        ]
        assert (entry.match_policy, entry.failure_policy) == ("Exact", "Ignore")
        assert (entry.side_effects, entry.timeout_seconds) == ("NoneOnDryRun", 3)


def test_what_a_decorator_does_not_say_is_left_to_the_server() -> None:
    (entry,) = mutating_configuration("hooks", [defaults(Kettle)(function)], client_config).webhooks
    assert entry.name == "mutate-kitchen-webhook-test-v1-kettle.kubewright.dev"
    assert (entry.failure_policy, entry.side_effects, entry.timeout_seconds) == ("Fail", "None", 10)
    assert (entry.match_policy, entry.reinvocation_policy, entry.match_conditions) == (None, None, [])
    assert (entry.object_selector, entry.namespace_selector) == (None, None)


def test_the_namespaces_of_a_configuration_limit_those_of_its_webhooks() -> None:
    checking = validates(Kettle, namespace_selector={"kitchen": "old"})(function)
    only = LabelSelector(match_labels={"kitchen": "new"})
    (entry,) = validating_configuration("hooks", [checking], client_config, namespaces=only).webhooks
    assert entry.namespace_selector == LabelSelector(
        match_labels={"kitchen": "old"},
        match_expressions=[LabelSelectorRequirement(key="kitchen", operator="In", values=["new"])],
    )


def test_the_name_that_is_made_of_a_path_is_one_that_the_server_takes() -> None:
    rule: Any = defaults(Kettle)(function).rules
    path = "/Check_all/pods"
    webhook: AdmissionWebhook[object] = handles(path, rules=rule)(lambda request: None)  # type: ignore[arg-type, return-value]
    assert webhook.name == "check-all-pods.kubewright.dev"


def test_two_webhooks_of_one_name_are_refused() -> None:
    name = "kettles.kitchen.example.com"
    both = [validates(Kettle, path=path, name=name)(function) for path in ("/one", "/other")]
    with pytest.raises(ValueError, match=f'two webhooks of the configuration "hooks" have the name "{name}"'):
        validating_configuration("hooks", both, client_config)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"path": "kettles"}, 'begins with "/"'),
        ({"timeout": 31}, "expected 1 to 30 seconds"),
        ({"timeout": "3s"}, "timeout=3s, expected 1 to 30 seconds"),
        ({"name": "kettles"}, '"kettles" cannot be the name of a webhook: expected a domain of at least three parts'),
        ({"name": "kettles.Example.com"}, "cannot be the name of a webhook"),
        ({"failure_policy": "fail"}, "failure_policy=\"fail\", expected 'Fail' or 'Ignore'"),
        ({"side_effects": "Some"}, "expected 'None' or 'NoneOnDryRun'"),
        ({"match_policy": "Any"}, "expected 'Equivalent' or 'Exact'"),
        ({"object_selector": "size in"}, 'object_selector: "size in" is not a label selector'),
        ({"object_selector": "size>1"}, "has no >"),
        ({"namespace_selector": {"a b": "c"}}, 'namespace_selector: "a b" cannot be in a label selector'),
        ({"namespace_selector": {"/a": "c"}}, '"/a" is not the name of a label'),
        ({"object_selector": {"size": "x" * 64}}, "is not the value of a label: expected at most 63"),
        ({"object_selector": ["size"]}, "object_selector: "),
        (
            {
                "object_selector": LabelSelector(
                    match_expressions=[LabelSelectorRequirement(key="a", operator="Like", values=["b"])]
                )
            },
            '"Like" is not an operator of a label selector',
        ),
        ({"match_conditions": {"not a name": "true"}}, '"not a name" cannot be the name of a match condition'),
        ({"match_conditions": {"a": " "}}, 'the match condition "a" has no expression'),
        ({"match_conditions": {f"c{number}": "true" for number in range(65)}}, "65 match_conditions, expected at most"),
        ({"match_conditions": ["true"]}, "match_conditions are expressions by name"),
        ({"reinvocation_policy": "IfNeeded"}, "has no option reinvocation_policy"),
        ({"operations": ["CREATE"]}, "has no option operations: write on="),
        ({"failurePolicy": "Fail"}, "has no option failurePolicy: write failure_policy="),
    ],
)
def test_what_an_api_server_would_refuse_is_refused_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        validates(Kettle, **options)(function)
