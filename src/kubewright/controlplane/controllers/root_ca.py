"""The ConfigMap `kube-root-ca.crt` of every namespace: the certificate by which pods verify the API server."""

from __future__ import annotations

from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.meta import ObjectMeta
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.client.errors import Forbidden, NotFound
from kubewright.controller import Request, Watched, for_object, predicate
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.namespaces import for_its_namespace, is_about_terminating
from kubewright.controlplane.controllers.runtime import Runtime
from kubewright.patterns.children import create_or_update

_NAME = "kube-root-ca.crt"
_ANNOTATION = "kubernetes.io/description"
# Verbatim from kube-controller-manager, for those who compare clusters.
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class RootCAPublisher:
    """Creates the ConfigMap where it is missing, and repairs it where its data was changed."""

    name = "root-ca"

    def __init__(
        self, client: Client, clock: Clock | None = None, *, ca_certificate: str, cache: Cache | None = None
    ) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._data = {"ca.crt": ca_certificate}

    async def run(self) -> None:
        """Watch and publish until cancelled."""
        cache = self._runtime.cache
        await self._runtime.run(
            self.name,
            self.reconcile,
            Watched(cache, Namespace, for_object, where=_may_lack_it),
            Watched(cache, ConfigMap, for_its_namespace, fields={"metadata.name": _NAME}),
        )

    async def reconcile(self, request: Request) -> None:
        """Make sure that one namespace has the certificate, unless it is being deleted."""
        metadata = ObjectMeta(name=_NAME, namespace=request.name)
        try:
            async with create_or_update(self._client, ConfigMap(metadata=metadata)) as published:
                if published.data != self._data or not published.metadata.annotations.get(_ANNOTATION):
                    published.data = dict(self._data)
                    published.metadata.annotations[_ANNOTATION] = _DESCRIPTION
        except NotFound:
            return  # not needed any more
        except Forbidden as error:
            if not is_about_terminating(error):
                raise


@predicate
def _may_lack_it(old: Namespace | None, new: Namespace | None) -> bool:
    return new is not None and (old is None or new.status.phase == "Active")
