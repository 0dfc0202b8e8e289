"""The pods of a StatefulSet: each has an ordinal, from which its name, its host name and its claims follow.

Nothing here talks to a server.
"""

from __future__ import annotations

import re
from datetime import datetime

import msgspec

from kubewright.api.apps.v1 import ControllerRevision, StatefulSet
from kubewright.api.core.v1 import PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, Volume
from kubewright.api.meta import ObjectMeta, OwnerReference
from kubewright.controlplane.controllers.controller_revisions import POD_REVISION, template_of
from kubewright.controlplane.controllers.pod_control import pod_from
from kubewright.controlplane.controllers.pods import available_in, is_ready

_POD_NAME = "statefulset.kubernetes.io/pod-name"
_POD_INDEX = "apps.kubernetes.io/pod-index"
_NAME = re.compile(r"(.*)-([0-9]+)")


def ordinal(pod: Pod, set_: StatefulSet) -> int | None:
    """The ordinal of a pod of the set; None when its name is not that of one."""
    matched = _NAME.fullmatch(pod.metadata.name)
    return int(matched[2]) if matched is not None and matched[1] == set_.metadata.name else None


def ordinals(set_: StatefulSet) -> range:
    """The ordinals that the set should have."""
    start = (set_.spec.ordinals.start or 0) if set_.spec.ordinals is not None else 0
    return range(start, start + (1 if set_.spec.replicas is None else set_.spec.replicas))


def is_running(pod: Pod) -> bool:
    """Whether the pod runs and is ready."""
    return pod.status.phase == "Running" and is_ready(pod)


def is_available(pod: Pod, set_: StatefulSet, now: datetime) -> bool:
    """Whether the pod runs and has been ready for long enough."""
    return is_running(pod) and available_in(pod, set_.spec.min_ready_seconds or 0, now) == 0


def revision_of(pod: Pod) -> str:
    """The name of the revision that the pod was made from."""
    return pod.metadata.labels.get(POD_REVISION, "")


def new_pod(set_: StatefulSet, number: int, current: ControllerRevision, update: ControllerRevision) -> Pod:
    """The pod of an ordinal: of the current revision below the partition, else of the new one."""
    strategy, start = set_.spec.update_strategy, ordinals(set_).start
    if strategy.rolling_update is not None:
        below = start + (strategy.rolling_update.partition or 0)
    else:
        below = start + (set_.status.current_replicas or 0) if strategy.type != "OnDelete" else 0
    revision = current if number < below else update
    name = f"{set_.metadata.name}-{number}"
    pod = pod_from(template_of(revision), set_, name=name)
    pod.metadata.labels |= {_POD_NAME: name, _POD_INDEX: str(number), POD_REVISION: revision.metadata.name}
    pod.spec.hostname, pod.spec.subdomain = name, set_.spec.service_name or None
    claims = {one.metadata.name: claim_name(set_, one, number) for one in set_.spec.volume_claim_templates}
    pod.spec.volumes = [
        *(
            Volume(name=volume, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))
            for volume, claim in claims.items()
        ),
        *(one for one in pod.spec.volumes if one.name not in claims),
    ]
    return pod


def claim_name(set_: StatefulSet, template: PersistentVolumeClaim, number: int) -> str:
    """The name of the claim of an ordinal."""
    return f"{template.metadata.name}-{set_.metadata.name}-{number}"


def new_claim(set_: StatefulSet, template: PersistentVolumeClaim, number: int) -> PersistentVolumeClaim:
    """The claim of an ordinal."""
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=claim_name(set_, template, number),
            namespace=set_.metadata.namespace,
            labels=template.metadata.labels | set_.spec.selector.match_labels,
            annotations=dict(template.metadata.annotations),
            owner_references=claim_owners(set_, None),
        ),
        spec=msgspec.structs.replace(template.spec),
    )


def claim_owners(set_: StatefulSet, surplus: Pod | None) -> list[OwnerReference]:
    """With what a claim is to be deleted, by the set's policy; `surplus` is its pod when the set has shrunk."""
    policy = set_.spec.persistent_volume_claim_retention_policy
    if policy is None:
        return []
    if surplus is not None and policy.when_scaled == "Delete":
        return [surplus.as_owner()]
    return [set_.as_owner()] if policy.when_deleted == "Delete" else []
