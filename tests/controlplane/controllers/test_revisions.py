from __future__ import annotations

import copy
from datetime import UTC, datetime

from kubewright.api.apps.v1 import Deployment, DeploymentSpec, ReplicaSet
from kubewright.api.core.v1 import Container, PodSpec, PodTemplateSpec
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.controlplane.controllers.revisions import (
    REVISION,
    REVISION_HISTORY,
    TEMPLATE_HASH,
    current_set,
    has_template_of,
    new_set,
    revision_annotations,
)
from kubewright.controlplane.controllers.template_hash import template_hash


def deployment(image: str = "web:1", **annotations: str) -> Deployment:
    return Deployment(
        metadata=ObjectMeta(name="web", namespace="shop", uid="1", annotations=annotations),
        spec=DeploymentSpec(
            selector=LabelSelector(match_labels={"app": "web"}),
            template=PodTemplateSpec(
                metadata=ObjectMeta(labels={"app": "web", "tier": "front"}),
                spec=PodSpec(containers=[Container(name="main", image=image)]),
            ),
        ),
    )


def made_for(subject: Deployment, *old: ReplicaSet) -> ReplicaSet:
    return new_set(subject, old, 2, {})


def test_a_hash_is_short_stable_and_different_for_different_templates_and_collisions() -> None:
    template = deployment().spec.template
    reordered = copy.deepcopy(template)
    reordered.metadata.labels = dict(reversed(template.metadata.labels.items()))

    assert template_hash(template, None) == template_hash(reordered, None)
    others = [template_hash(deployment("web:2").spec.template, None), template_hash(template, 1)]
    assert len({template_hash(template, None), *others}) == 3
    assert set(template_hash(template, None)) <= set("bcdfghjklmnpqrstvwxz2456789")


def test_a_new_set_is_distinguished_by_its_hash_and_controlled_by_its_deployment() -> None:
    subject = deployment()

    made = made_for(subject)

    hashed = made.metadata.labels[TEMPLATE_HASH]
    assert made.metadata.name == f"web-{hashed}"
    assert made.metadata.labels == {"app": "web", "tier": "front", TEMPLATE_HASH: hashed}
    assert made.spec.selector.match_labels == {"app": "web", TEMPLATE_HASH: hashed}
    assert made.spec.template.metadata.labels == made.metadata.labels
    assert made.metadata.owner_references[0].uid == "1"
    assert TEMPLATE_HASH not in subject.spec.template.metadata.labels


def test_a_name_too_long_for_the_hash_is_cut() -> None:
    subject = deployment()
    subject.metadata.name = "w" * 253

    assert len(made_for(subject).metadata.name) == 253


def test_the_current_set_is_the_oldest_with_the_template_whatever_its_hash() -> None:
    subject = deployment()
    old, first, second = made_for(deployment("web:0")), made_for(subject), made_for(subject)
    first.metadata.creation_timestamp = datetime(2026, 1, 1, tzinfo=UTC)
    second.metadata.creation_timestamp = datetime(2026, 1, 2, tzinfo=UTC)

    assert current_set(subject, [old, second, first]) is first
    assert current_set(subject, [old]) is None
    assert has_template_of(first, subject)
    assert not has_template_of(old, subject)


def test_revisions_count_up_and_a_template_that_returns_remembers_its_old_ones() -> None:
    one = made_for(deployment())
    two = made_for(deployment("web:2"), one)
    assert (one.metadata.annotations[REVISION], two.metadata.annotations[REVISION]) == ("1", "2")

    changes = revision_annotations(deployment(), one, [two])

    assert changes == {REVISION: "3", REVISION_HISTORY: "1"}
    one.metadata.annotations |= changes
    two.metadata.annotations[REVISION] = "4"
    assert revision_annotations(deployment(), one, [two]) == {REVISION: "5", REVISION_HISTORY: "1,3"}
    assert revision_annotations(deployment(), two, [one]) == {}


def test_a_history_that_grows_too_long_loses_its_beginning() -> None:
    one = made_for(deployment())
    one.metadata.annotations |= {REVISION: "1000", REVISION_HISTORY: ",".join(map(str, range(100, 600)))}
    two = made_for(deployment("web:2"), one)

    history = revision_annotations(deployment(), one, [two])[REVISION_HISTORY]

    assert len(history) <= 2000
    assert history.endswith(",599,1000")


def test_a_deployments_annotations_go_to_its_current_set_except_those_about_revisions() -> None:
    subject = deployment(
        **{
            "kubernetes.io/change-cause": "faster",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            REVISION: "9",
        }
    )

    assert made_for(subject).metadata.annotations == {"kubernetes.io/change-cause": "faster", REVISION: "1"}
