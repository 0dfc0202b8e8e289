"""The tokens of service accounts in Secrets of the type `kubernetes.io/service-account-token`.

A user creates the Secret and names the service account in an annotation; the rest is filled in. Such a token does not
expire: it ends with its Secret, which ends with the service account.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import NamedTuple

from kubewright.api.core.v1 import Secret, ServiceAccount
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.cache import Cache
from kubewright.client import Client
from kubewright.controller import Event, Handler, Watched
from kubewright.controlplane.controllers.clock import Clock
from kubewright.controlplane.controllers.runtime import Runtime
from kubewright.controlplane.embedded.auth.secret_tokens import secret_claims
from kubewright.controlplane.embedded.auth.tokens import TokenSigner

_TYPE = "kubernetes.io/service-account-token"
_NAME, _UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"


class TokenKey(NamedTuple):
    """A Secret and the service account that it names. Of a Secret that was deleted nothing else is known."""

    namespace: str
    secret: str
    account: str


class ServiceAccountTokens:
    """Fills in the token, the authority's certificate and the namespace where they are missing.

    A Secret whose service account is not there, or is another one than when it was filled in, is deleted. A Secret
    that was deleted is no longer referred to by its service account.
    """

    name = "serviceaccount-token"

    def __init__(
        self,
        client: Client,
        *,
        signer: TokenSigner,
        ca_certificate: str,
        clock: Clock | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._runtime = Runtime(client, cache)
        self._client = self._runtime.client
        self._signer = signer
        self._ca_certificate = _encoded(ca_certificate)

    async def run(self) -> None:
        """Watch and fill in until cancelled."""
        cache = self._runtime.cache
        await self._runtime.run(
            self.name,
            self.reconcile,
            Watched(cache, Secret, Handler(_tokens)),
            Watched(cache, ServiceAccount, Handler(self._tokens_of_deleted)),
        )

    async def reconcile(self, key: TokenKey) -> None:
        """Fill in or delete one Secret, or remove the reference to one that was deleted."""
        secret = await self._client.find(Secret, ObjectKey(key.namespace, key.secret))
        if secret is None:
            await self._remove_reference(key)
            return
        if secret.metadata.annotations.get(_NAME) != key.account:
            return  # which is enqueued, too
        account = await self._account(secret)
        if account is None:
            await self._client.delete(secret, uid=secret.metadata.uid, missing_ok=True)
        else:
            await self._fill_in(secret, account)

    async def _account(self, secret: Secret) -> ServiceAccount | None:
        key = ObjectKey(secret.metadata.namespace, secret.metadata.annotations[_NAME])
        uid = secret.metadata.annotations.get(_UID)
        account = await self._client.find(ServiceAccount, key)
        if account is None or uid not in (None, "", account.metadata.uid):
            # A cache may not have seen the service account yet that was created before the Secret.
            account = await self._client.find(ServiceAccount, key, consistency="live")
        return account if account is not None and uid in (None, "", account.metadata.uid) else None

    async def _fill_in(self, secret: Secret, account: ServiceAccount) -> None:
        data = {"namespace": _encoded(secret.metadata.namespace), **_filled(secret.data)}
        data["ca.crt"] = self._ca_certificate
        if "token" not in data:
            claims = secret_claims(
                account.metadata.namespace, account.metadata.name, account.metadata.uid, secret.metadata.name
            )
            data["token"] = _encoded(self._signer.sign(claims))
        if data != secret.data:
            secret.data = data
            secret.metadata.annotations |= {_NAME: account.metadata.name, _UID: account.metadata.uid}
            await self._client.update(secret)

    async def _remove_reference(self, key: TokenKey) -> None:
        account = await self._client.find(ServiceAccount, ObjectKey(key.namespace, key.account))
        if account is None:
            return
        kept = [reference for reference in account.secrets if reference.name != key.secret]
        if kept != account.secrets:
            account.secrets = kept
            await self._client.update(account)

    async def _tokens_of_deleted(self, event: Event[Object]) -> Iterable[TokenKey]:
        old, new = event.old, event.new
        if old is None or (new is not None and new.header.uid == old.header.uid):
            return ()
        secrets = await self._client.list(Secret, namespace=old.namespace)
        return [key for secret in secrets for key in _key(secret) if key.account == old.name]


def _tokens(event: Event[Object]) -> Iterable[TokenKey]:
    return {key for secret in (event.old_object, event.new_object) for key in _key(secret)}


def _key(secret: Object | None) -> Iterable[TokenKey]:
    if isinstance(secret, Secret) and secret.type == _TYPE:
        metadata = secret.metadata
        yield TokenKey(metadata.namespace, metadata.name, metadata.annotations.get(_NAME, ""))


def _filled(data: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in data.items() if value}


def _encoded(value: str) -> str:
    return base64.b64encode(value.encode()).decode()
