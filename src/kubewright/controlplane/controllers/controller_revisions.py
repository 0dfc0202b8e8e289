"""ControllerRevisions: the pod templates that a StatefulSet or a DaemonSet has had, for rollouts and for `undo`."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import NamedTuple, TypeAlias

from kubewright.api.apps.v1 import ControllerRevision, DaemonSet, StatefulSet
from kubewright.api.codec import from_json, to_json
from kubewright.api.core.v1 import PodTemplate, PodTemplateSpec
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.cache import Cache, CachedClient, WatchHandle
from kubewright.client import MergePatch
from kubewright.client.errors import AlreadyExists
from kubewright.controlplane.controllers.ownership import Owned, claimed
from kubewright.controlplane.controllers.template_hash import safe_encoded, template_hash

HASH = "controller.kubernetes.io/hash"
POD_REVISION = "controller-revision-hash"

_MAX_PREFIX = 223
_OFFSET, _PRIME = 0x811C9DC5, 0x01000193

Revised: TypeAlias = StatefulSet | DaemonSet


class Present(NamedTuple):
    """The revision of the present template, all that there are by age, and how many names were taken."""

    newest: ControllerRevision
    all: list[ControllerRevision]
    collisions: int


class History:
    """The revisions of a watch by the workload that they belong to."""

    def __init__(self, client: CachedClient, cache: Cache, revisions: WatchHandle[ControllerRevision]) -> None:
        self._client = client
        self._revisions = Owned(cache, revisions)

    async def present(self, owner: Revised) -> Present:
        """The revision of the present template: as it was, renumbered when it is a former one, or a new one."""
        selector = owner.spec.selector
        candidates = [*self._revisions.by(owner), *self._revisions.orphans(owner.metadata.namespace, selector)]
        known = sorted(await claimed(self._client, owner, selector, candidates), key=_order)
        data, number = _data(owner), known[-1].revision + 1 if known else 1
        collisions = owner.status.collision_count or 0
        same = [one for one in known if one.data == data]
        if same and same[-1] is known[-1]:
            return Present(known[-1], known, collisions)
        if same:
            newest = await self._client.patch(same[-1], MergePatch({"revision": number}))
            others = [one for one in known if one is not same[-1]]
            return Present(newest, [*others, newest], collisions)
        while True:
            try:
                newest = await self._client.create(_new(owner, data, number, collisions))
            except AlreadyExists:
                collisions += 1
            else:
                return Present(newest, [*known, newest], collisions)

    async def truncate(self, owner: Revised, present: Present, used: Collection[str]) -> None:
        """Delete the oldest revisions beyond the limit that no pod has; `used` are the names of others that stay."""
        limit = owner.spec.revision_history_limit if owner.spec.revision_history_limit is not None else 10
        unused = [one for one in present.all if one.metadata.name not in used]
        for one in unused[: max(0, len(unused) - limit)]:
            await self._client.delete(one, uid=one.metadata.uid, missing_ok=True)


def hash_label(owner: Revised) -> str:
    """The label of a revision that has its hash."""
    return HASH if isinstance(owner, StatefulSet) else POD_REVISION


def template_of(revision: ControllerRevision) -> PodTemplateSpec:
    """The pod template of a revision."""
    spec = (revision.data or {}).get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    fields: JSONObject = dict(template) if isinstance(template, dict) else {}
    fields.pop("$patch", None)
    return from_json(PodTemplate, {"template": fields}).template


def _order(revision: ControllerRevision) -> tuple[int, str, str]:
    return revision.revision, str(revision.metadata.creation_timestamp), revision.metadata.name


def _data(owner: Revised) -> dict[str, JSONValue]:
    """What is kept: a patch that `kubectl rollout undo` sends as it is."""
    whole = to_json(owner)
    spec = whole.get("spec") if isinstance(whole, dict) else None
    template = spec.get("template") if isinstance(spec, dict) else None
    return {"spec": {"template": {**(template if isinstance(template, dict) else {}), "$patch": "replace"}}}


def _new(owner: Revised, data: dict[str, JSONValue], number: int, collisions: int) -> ControllerRevision:
    if isinstance(owner, DaemonSet):
        # Before there ever was a collision, their number is not hashed.
        hashed = template_hash(owner.spec.template, collisions or owner.status.collision_count)
    else:
        hashed = _hash(data, collisions)
    return ControllerRevision(
        metadata=ObjectMeta(
            name=f"{owner.metadata.name[:_MAX_PREFIX]}-{hashed}",
            namespace=owner.metadata.namespace,
            labels=owner.spec.template.metadata.labels | {hash_label(owner): hashed},
            annotations=dict(owner.metadata.annotations),
            owner_references=[owner.as_owner()],
        ),
        data=data,
        revision=number,
    )


def _hash(data: dict[str, JSONValue], collisions: int) -> str:
    """FNV-1 of the data as Go writes them, and of the number of collisions."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    hashed = _OFFSET
    for byte in f"{text}{collisions}".encode():
        hashed = ((hashed * _PRIME) & 0xFFFFFFFF) ^ byte
    return safe_encoded(str(hashed))
