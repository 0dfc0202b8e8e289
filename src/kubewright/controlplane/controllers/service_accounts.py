"""The service account `default` of every active namespace: pods are admitted only where it is."""

from __future__ import annotations

from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.client.errors import Forbidden
from kubewright.controller import Request, Watched, for_object
from kubewright.controlplane.controllers.namespaces import for_its_namespace, is_about_terminating
from kubewright.controlplane.controllers.runtime import StatelessController
from kubewright.patterns.children import create_or_update

_NAME = "default"


class ServiceAccounts(StatelessController):
    """Creates the account where it is missing, and again where it was deleted. It never changes one."""

    name = "serviceaccounts"

    async def run(self) -> None:
        """Watch and create until cancelled."""
        cache = self._runtime.cache
        await self._runtime.run(
            self.name,
            self.reconcile,
            Watched(cache, Namespace, for_object),
            Watched(cache, ServiceAccount, for_its_namespace, fields={"metadata.name": _NAME}),
        )

    async def reconcile(self, request: Request) -> None:
        """Make sure that one namespace has its account, as long as it is active."""
        namespace = await self._client.find(Namespace, request)
        if namespace is None or namespace.status.phase != "Active":
            return
        account = ServiceAccount(metadata=ObjectMeta(name=_NAME, namespace=request.name))
        try:
            async with create_or_update(self._client, account):
                pass  # one that is there stays as it is
        except Forbidden as error:
            if not is_about_terminating(error):
                raise
