from __future__ import annotations

import msgspec
from tests.deployment.ferries import Anchorage, Ferry, FerryV1Beta1, default_pod, ferries

from kubewright.api.meta import LabelSelectorRequirement
from kubewright.deployment.extensions import configurations, definitions
from kubewright.deployment.workload import webhook_service


def test_every_kind_has_one_definition_with_all_its_versions() -> None:
    anchorages, ferry = definitions(ferries())
    assert [version.name for version in ferry.spec.versions] == ["v1", "v1beta1"]
    assert [version.name for version in anchorages.spec.versions] == ["v1"]
    assert anchorages.spec.conversion is None


def test_versions_that_no_webhook_converts_are_in_one_definition() -> None:
    operator = msgspec.structs.replace(ferries(), kinds=[FerryV1Beta1, Anchorage, Ferry, Ferry], webhooks=[])
    anchorages, ferry = definitions(operator)
    assert [version.name for version in ferry.spec.versions] == ["v1", "v1beta1"]
    assert ferry.spec.conversion is None
    assert anchorages.metadata.name == "anchorages.ferries.deployment.test"


def test_conversion_and_admission_are_called_by_the_service() -> None:
    operator = ferries()
    service = webhook_service(operator)
    conversion = definitions(operator)[1].spec.conversion
    assert conversion is not None
    assert conversion.webhook is not None
    called = [conversion.webhook.client_config, *(each.webhooks[0].client_config for each in configurations(operator))]
    for config in called:
        assert config is not None
        assert config.service is not None
        assert (config.service.namespace, config.service.name) == (service.metadata.namespace, service.metadata.name)
    assert len(called) == 3


def test_a_webhook_of_other_kinds_does_not_keep_the_operator_from_starting() -> None:
    mutating, validating = configurations(ferries("harbour"))
    selector = mutating.webhooks[0].namespace_selector
    assert selector is not None
    elsewhere = LabelSelectorRequirement(key="kubernetes.io/metadata.name", operator="NotIn", values=["harbour"])
    assert (selector.match_labels, selector.match_expressions) == ({"tier": "ferries"}, [elsewhere])
    assert validating.webhooks[0].namespace_selector is None
    # What was decorated is as before.
    assert default_pod.namespace_selector is not None
    assert default_pod.namespace_selector.match_expressions == []
