"""The ConfigMap `kube-root-ca.crt` of every namespace: the certificate by which pods know the API server."""

from __future__ import annotations

import copy

from kubewright.api.core.v1 import ConfigMap, Namespace
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.errors import AlreadyExists, Forbidden, NotFound
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.loop import Mirror, Queue, run
from kubewright.controlplane.controllers.namespaces import is_about_terminating

_NAME = "kube-root-ca.crt"
_ANNOTATION = "kubernetes.io/description"
# Word for word as kube-controller-manager has it: people compare clusters.
_DESCRIPTION = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes "
    "clusters."
)


class RootCAPublisher:
    """Creates the ConfigMap where it is missing, and repairs it where its data was changed."""

    name = "root-ca"

    def __init__(self, client: Client, clock: Clock | None = None, *, ca_certificate: str) -> None:
        self._client = client
        self._data = {"ca.crt": ca_certificate}
        self._queue = Queue[str](clock or SystemClock())
        self._namespaces = Mirror(client, Namespace, changed=self._namespace_changed)
        self._config_maps = Mirror(client, ConfigMap, changed=self._config_map_changed, fields={"metadata.name": _NAME})

    async def run(self) -> None:
        """Watch and publish until cancelled."""
        await run(self._namespaces, self._config_maps, queue=self._queue, reconcile=self.reconcile)

    async def reconcile(self, name: str) -> None:
        """Make sure that one namespace has the certificate, unless it is going."""
        found = self._config_maps.get(ObjectKey(name, _NAME))
        if found is not None:
            if found.data == self._data and found.metadata.annotations.get(_ANNOTATION):
                return
            repaired = copy.deepcopy(found)
            repaired.data = dict(self._data)
            repaired.metadata.annotations[_ANNOTATION] = _DESCRIPTION
            self._config_maps.record(await self._client.update(repaired))
            return
        metadata = ObjectMeta(name=_NAME, namespace=name, annotations={_ANNOTATION: _DESCRIPTION})
        try:
            created = await self._client.create(ConfigMap(metadata=metadata, data=dict(self._data)))
        except (AlreadyExists, NotFound):
            return  # seen soon, or not needed any more
        except Forbidden as error:
            if not is_about_terminating(error):
                raise
            return
        self._config_maps.record(created)

    def _namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None and (old is None or new.status.phase == "Active"):
            self._queue.add(new.metadata.name)

    def _config_map_changed(self, old: ConfigMap | None, new: ConfigMap | None) -> None:
        changed = new or old
        if changed is not None:
            self._queue.add(changed.metadata.namespace)
