"""A pair of webhooks for Kubernetes' own pods: one annotates them, the other admits none without the annotation."""

from __future__ import annotations

from kubewright import Denied, Review, defaults, validates
from kubewright.api.core.v1 import Pod

ANNOTATION = "example-mutating-admission-webhook"
VALUE = "foo"

# Pods of the cluster and of this operator itself must not wait for it: it runs in kube-system.
ELSEWHERE = "kubernetes.io/metadata.name notin (kube-system)"


@defaults(Pod, namespace_selector=ELSEWHERE)
def annotate_pod(review: Review[Pod]) -> None:
    """Set the annotation."""
    review.object.metadata.annotations[ANNOTATION] = VALUE


@validates(Pod, namespace_selector=ELSEWHERE)
def check_pod(review: Review[Pod]) -> None:
    """Admit a pod only with the annotation and its value."""
    found = review.object.metadata.annotations.get(ANNOTATION)
    if found is None:
        raise Denied(f"missing annotation {ANNOTATION}")
    if found != VALUE:
        raise Denied(f'annotation {ANNOTATION} is "{found}": expected "{VALUE}"')
