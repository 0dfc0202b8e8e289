from __future__ import annotations

import pytest

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference
from kubewright.controlplane.controllers.ownership import (
    controller_of,
    controller_reference,
    orphans_of,
    owner_index,
    selects,
)


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (LabelSelector(), True),
        (LabelSelector(match_labels={"app": "web"}), True),
        (LabelSelector(match_labels={"app": "web", "tier": "front"}), False),
        (
            LabelSelector(
                match_expressions=[LabelSelectorRequirement(key="app", operator="In", values=["web", "shop"])]
            ),
            True,
        ),
        (
            LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="NotIn", values=["web"])]),
            False,
        ),
        (
            LabelSelector(match_expressions=[LabelSelectorRequirement(key="tier", operator="NotIn", values=["web"])]),
            True,
        ),
        (LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="Exists")]), True),
        (LabelSelector(match_expressions=[LabelSelectorRequirement(key="app", operator="DoesNotExist")]), False),
    ],
)
def test_a_selector_matches_when_all_its_requirements_hold(selector: LabelSelector, matches: bool) -> None:
    assert selects(selector, {"app": "web"}) is matches


def test_only_a_reference_that_says_so_is_the_controller() -> None:
    owner = ConfigMap(metadata=ObjectMeta(name="owner", uid="1"))
    plain = OwnerReference(api_version="v1", kind="ConfigMap", name="plain", uid="2")
    orphan = ConfigMap(metadata=ObjectMeta(name="a", namespace="shop", owner_references=[plain]))
    owned = ConfigMap(
        metadata=ObjectMeta(name="b", namespace="shop", owner_references=[plain, controller_reference(owner)])
    )

    assert controller_of(orphan) is None
    assert controller_of(owned) == controller_reference(owner)
    assert owner_index(orphan) == (orphans_of("shop"),)
    assert owner_index(owned) == ("1",)
