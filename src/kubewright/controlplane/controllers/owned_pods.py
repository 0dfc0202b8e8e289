"""The pods of a workload: those that it controls, after adopting orphans and releasing those it no longer selects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kubewright.api.core.v1 import Pod
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import LabelSelector
from kubewright.api.resources import Object
from kubewright.api.selectors import label_matcher
from kubewright.cache import Cache, CachedClient, WatchHandle
from kubewright.controller import Handler, Request, Watched, for_owner, mapped
from kubewright.controlplane.controllers.ownership import Owned, claimed, is_new_orphan

T = TypeVar("T", bound=Object)


class OwnedPods:
    """The pods of a watch by the workload that controls them."""

    def __init__(self, client: CachedClient, cache: Cache, pods: WatchHandle[Pod]) -> None:
        self._client = client
        self._pods = Owned(cache, pods)

    def by(self, owner: Object, selector: LabelSelector) -> list[Pod]:
        """Those that the owner controls and selects, without asking the server."""
        matcher = label_matcher(selector)
        return [pod for pod in self._pods.by(owner) if matcher.matches(pod.metadata.labels)]

    async def claimed(
        self, owner: T, selector: LabelSelector, where: Callable[[Pod], bool] = lambda pod: True
    ) -> list[Pod]:
        """Those that the owner controls and selects. Only pods for which `where` holds are adopted or released."""
        own = self._pods.by(owner)
        candidates = [*own, *self._pods.orphans(owner.metadata.namespace, selector)]
        mine = await claimed(self._client, owner, selector, filter(where, candidates))
        matcher = label_matcher(selector)
        return mine + [pod for pod in own if not where(pod) and matcher.matches(pod.metadata.labels)]


def watched_pods(
    client: CachedClient, cache: Cache, kind: type[T], selector_of: Callable[[T], LabelSelector]
) -> tuple[Watched[Request], Watched[Request]]:
    """The workloads of a kind that a changed pod concerns: the one that controls it, or those that may adopt it."""

    async def adopters(pod: Pod) -> list[ObjectKey]:
        workloads = await client.list(kind, namespace=pod.metadata.namespace)
        return [one.key for one in workloads if label_matcher(selector_of(one)).matches(pod.metadata.labels)]

    by_owner: Handler[Request] = for_owner(kind)
    return Watched(cache, Pod, by_owner), Watched(cache, Pod, mapped(adopters), where=is_new_orphan)
