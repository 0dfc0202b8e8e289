"""The service account `default` of every active namespace: pods are admitted only where it is."""

from __future__ import annotations

from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.kinds import ObjectKey
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.errors import AlreadyExists, Forbidden
from kubewright.controlplane.controllers.clock import Clock, SystemClock
from kubewright.controlplane.controllers.loop import Mirror, Queue, run
from kubewright.controlplane.controllers.namespaces import is_about_terminating

_NAME = "default"


class ServiceAccounts:
    """Creates the account where it is missing, and again where it was deleted. It never changes one."""

    name = "serviceaccounts"

    def __init__(self, client: Client, clock: Clock | None = None) -> None:
        self._client = client
        self._queue = Queue[str](clock or SystemClock())
        self._namespaces = Mirror(client, Namespace, changed=self._namespace_changed)
        self._accounts = Mirror(client, ServiceAccount, changed=self._account_changed, fields={"metadata.name": _NAME})

    async def run(self) -> None:
        """Watch and create until cancelled."""
        await run(self._namespaces, self._accounts, queue=self._queue, reconcile=self.reconcile)

    async def reconcile(self, name: str) -> None:
        """Make sure that one namespace has its account, as long as it is active."""
        namespace = self._namespaces.get(ObjectKey("", name))
        if namespace is None or namespace.status.phase != "Active" or self._accounts.get(ObjectKey(name, _NAME)):
            return
        try:
            account = await self._client.create(ServiceAccount(metadata=ObjectMeta(name=_NAME, namespace=name)))
        except AlreadyExists:
            return
        except Forbidden as error:
            if not is_about_terminating(error):
                raise
            return
        self._accounts.record(account)

    def _namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None:
            self._queue.add(new.metadata.name)

    def _account_changed(self, old: ServiceAccount | None, new: ServiceAccount | None) -> None:
        if old is not None and new is None:
            self._queue.add(old.metadata.namespace)
