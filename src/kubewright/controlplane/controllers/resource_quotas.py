"""Keeps the status of resource quotas: their limits, and how much of them is used.

The server adds what is created. Here it is all counted again when a quota is new or changed, and when something goes
that may have counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from kubewright.api.codec import to_json
from kubewright.api.core.v1 import PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaStatus, Service
from kubewright.api.dynamic import PartialObject
from kubewright.api.markers import JSONObject
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Object, resource_info
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.controller import Channel, Event, Handler, Request, Watched, predicate
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.pods import ENDED
from kubewright.controlplane.controllers.runtime import Runtime
from kubewright.controlplane.controllers.whole_cluster import WholeCluster
from kubewright.controlplane.embedded.builtins.quota import is_in_scopes, tracked, usage

_ZERO = Quantity(0)
# What more than the number of objects counts of.
_WHOLE: dict[tuple[str, str], type[Object]] = {
    ("", "pods"): Pod,
    ("", "services"): Service,
    ("", "persistentvolumeclaims"): PersistentVolumeClaim,
}


class ResourceQuotas:
    """Recounts the usage of quotas."""

    name = "resourcequota"

    def __init__(self, client: Client, *, clock: Clock | None = None, cache: Cache | None = None) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._clock = clock or SystemClock()
        self._quotas: dict[str, dict[Request, None]] = {}
        self._freed = Channel[Request]("freed")
        self._views: dict[tuple[str, str], type[PartialObject]] = {}
        self._cluster = WholeCluster(client, self._runtime.cache, self._changed)

    async def run(self) -> None:
        """Watch and count until cancelled."""
        cache = self._runtime.cache
        await self._runtime.run(
            self.name,
            self.reconcile,
            Watched(cache, ResourceQuota, Handler(self._quota_changed)),
            Watched(cache, Pod, Handler(self._of_namespace), where=_has_ended),
            Watched(cache, Service, Handler(self._of_namespace), where=_needs_less),
            self._freed,
            beside=(self._cluster.run,),
        )

    async def reconcile(self, request: Request) -> None:
        """Count what one quota limits."""
        # Reads are live, and the write is conditional: what the server adds meanwhile is never lost.
        quota = await self._client.find(ResourceQuota, request, consistency="live")
        if quota is None:
            return
        hard = quota.spec.hard
        used = {name: quota.status.used[name] for name in hard if name in quota.status.used}
        used |= await self._used(quota)
        if quota.status.hard != hard or quota.status.used != used:
            quota.status = ResourceQuotaStatus(hard=hard, used=used)
            await self._client.status.update(quota)

    async def _used(self, quota: ResourceQuota) -> dict[str, Quantity]:
        await self._cluster.complete()
        document, now = cast(JSONObject, to_json(quota)), self._clock.now()
        counted: dict[str, Quantity] = {}
        for group, plural in _WHOLE.keys() | self._views.keys():
            names = tracked(quota.spec.hard, group, plural)
            if not names:
                continue
            kind = _WHOLE.get((group, plural)) or self._views[group, plural]
            found = await self._client.list(kind, namespace=quota.metadata.namespace, consistency="live")
            counted |= {name: counted.get(name, _ZERO) for name in names}
            for obj in found:
                one = cast(JSONObject, to_json(obj))
                if is_in_scopes(document, one, group, plural):
                    amounts = usage(one, group, plural, now)
                    counted |= {name: counted[name] + amounts[name] for name in names if name in amounts}
        return {name: _ZERO for name in quota.spec.hard if name.startswith("count/")} | counted

    def _changed(self, old: PartialObject | None, new: PartialObject | None) -> None:
        obj = new or old
        if obj is None or not obj.metadata.namespace:
            return
        info = resource_info(type(obj))
        self._views[info.gvk.group, info.plural] = type(obj)
        if new is None:
            for quota in self._quotas.get(obj.metadata.namespace, ()):
                self._freed.send(quota)

    def _quota_changed(self, event: Event[Object]) -> Iterable[Request]:
        old, new = event.old_object, event.new_object
        quotas = self._quotas.setdefault(event.key.namespace, {})
        if not isinstance(new, ResourceQuota):
            quotas.pop(event.key, None)
            return ()
        quotas[event.key] = None
        is_same = isinstance(old, ResourceQuota) and old.spec == new.spec
        return () if is_same else (event.key,)

    def _of_namespace(self, event: Event[Object]) -> Iterable[Request]:
        return list(self._quotas.get(event.key.namespace, ()))


@predicate
def _has_ended(old: Pod | None, new: Pod | None) -> bool:
    return old is not None and new is not None and new.status.phase in ENDED and old.status.phase not in ENDED


@predicate
def _needs_less(old: Service | None, new: Service | None) -> bool:
    return old is not None and new is not None and (old.spec.type, old.spec.ports) != (new.spec.type, new.spec.ports)
