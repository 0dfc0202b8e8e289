"""The history of a Deployment: one ReplicaSet per pod template, numbered by annotations.

`kubectl rollout history` and `undo` read these annotations, so they are exactly Kubernetes' own.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kubewright.api.apps.v1 import Deployment, ReplicaSet, ReplicaSetSpec
from kubewright.api.core.v1 import PodTemplateSpec
from kubewright.api.meta import LabelSelector, ObjectMeta
from kubewright.controlplane.controllers.template_hash import template_hash

REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
TEMPLATE_HASH = "pod-template-hash"

_NOT_COPIED = frozenset(
    (
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        REVISION_HISTORY,
        DESIRED_REPLICAS,
        MAX_REPLICAS,
    )
)
_MAX_HISTORY_LENGTH = 2000
_MAX_NAME_LENGTH = 253


def number(replica_set: ReplicaSet, annotation: str) -> int | None:
    """The number in an annotation; None when there is none."""
    text = replica_set.metadata.annotations.get(annotation, "")
    return int(text) if text.isdecimal() else None


def current_set(deployment: Deployment, replica_sets: Sequence[ReplicaSet]) -> ReplicaSet | None:
    """The ReplicaSet of the Deployment's present template; the oldest when several have it."""
    desired = _without_hash(deployment.spec.template)
    fitting = (one for one in replica_sets if _without_hash(one.spec.template) == desired)
    return min(fitting, key=lambda one: (str(one.metadata.creation_timestamp), one.metadata.name), default=None)


def has_template_of(replica_set: ReplicaSet, deployment: Deployment) -> bool:
    """Whether the ReplicaSet has the pod template of the Deployment."""
    return _without_hash(replica_set.spec.template) == _without_hash(deployment.spec.template)


def _without_hash(template: PodTemplateSpec) -> PodTemplateSpec:
    labels = {name: value for name, value in template.metadata.labels.items() if name != TEMPLATE_HASH}
    return msgspec.structs.replace(template, metadata=msgspec.structs.replace(template.metadata, labels=labels))


def new_set(
    deployment: Deployment, old: Sequence[ReplicaSet], replicas: int, annotations: dict[str, str]
) -> ReplicaSet:
    """The ReplicaSet for a template that has none yet, with the next revision."""
    template, selector = deployment.spec.template, deployment.spec.selector
    hashed = template_hash(template, deployment.status.collision_count)
    labels = template.metadata.labels | {TEMPLATE_HASH: hashed}
    created = ReplicaSet(
        metadata=ObjectMeta(
            name=f"{deployment.metadata.name[: _MAX_NAME_LENGTH - len(hashed) - 1]}-{hashed}",
            namespace=deployment.metadata.namespace,
            labels=labels,
            annotations=annotations,
            owner_references=[deployment.as_owner()],
        ),
        spec=ReplicaSetSpec(
            replicas=replicas,
            min_ready_seconds=deployment.spec.min_ready_seconds,
            selector=LabelSelector(
                match_labels=selector.match_labels | {TEMPLATE_HASH: hashed},
                match_expressions=selector.match_expressions,
            ),
            template=msgspec.structs.replace(
                template, metadata=msgspec.structs.replace(template.metadata, labels=labels)
            ),
        ),
    )
    created.metadata.annotations |= revision_annotations(deployment, created, old)
    return created


def revision_annotations(deployment: Deployment, current: ReplicaSet, old: Sequence[ReplicaSet]) -> dict[str, str]:
    """What to change in the annotations of the present ReplicaSet: its revision, and the Deployment's own ones."""
    have = current.metadata.annotations
    changes = {
        name: value
        for name, value in deployment.metadata.annotations.items()
        if name not in _NOT_COPIED and have.get(name) != value
    }
    was, revision = have.get(REVISION, ""), next_revision(old)
    if was and not was.isdecimal():
        return changes
    if int(was or 0) < revision:
        changes[REVISION] = str(revision)
        if was:
            changes[REVISION_HISTORY] = _lengthened(have.get(REVISION_HISTORY, ""), was)
    return changes


def next_revision(old: Sequence[ReplicaSet]) -> int:
    """The revision of the present template: one more than all others."""
    return max((number(one, REVISION) or 0 for one in old), default=0) + 1


def _lengthened(history: str, revision: str) -> str:
    revisions = [*filter(None, history.split(",")), revision]
    while len(",".join(revisions)) > _MAX_HISTORY_LENGTH:
        del revisions[0]
    return ",".join(revisions)
