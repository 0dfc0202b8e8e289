"""The kubeconfig of a User, in the Secret `kubeconfig-NAME`.

Its token is bound to that Secret: when the Secret is deleted, to be replaced, the API server refuses every token that
was ever in it. A token that nears its end is followed by another one in the same Secret, and stays valid until then.
What a token was issued for is an annotation of the Secret, so that it is known whatever was interrupted.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime, timedelta

import msgspec

from kubewright import AlreadyExists, Config, Model, Time, now, set_controller_reference
from kubewright.api.authentication.v1 import TokenRequest
from kubewright.api.core.v1 import Secret, ServiceAccount
from kubewright.patterns import NotYet

from .context import UserContext
from .names import CREDENTIAL, OWNER, SYSTEM_NAMESPACE, kubeconfig_of
from .ownership import check_usable, is_of, is_of_predecessor
from .types import DEFAULT_EXPIRATION, KubeConfigSecret, User

KEY = "kubeconfig"
RENEWAL = 0.8  # of its life, after which a token is renewed


class Credential(Model):
    """What the token in a Secret was issued for."""

    seconds: int
    """The life that was asked for; the server may have given less."""
    expires: Time
    renewal: Time
    """When the next one is issued."""
    rotated: Time | None
    """The `kubeConfigRotateAt` that it obeys."""
    account: str
    """The uid of the service account: tokens of one that was deleted are refused."""
    server: str
    """A hash of what the kubeconfig says about the server."""
    hash: str
    """That of the kubeconfig."""


def public_config(config: Config, server: str) -> Config:
    """What a kubeconfig may have of the operator's own configuration: neither its credentials nor its proxy."""
    return Config(server=server or config.server, tls=config.tls)


async def sync_kubeconfig(context: UserContext) -> None:
    """Have a kubeconfig in the Secret that works and will do so for a while, and report where it is."""
    user, client = context.object, context.client
    secret = await client.find(Secret, kubeconfig_of(context.name), namespace=SYSTEM_NAMESPACE)
    if secret is not None and _is_obsolete(user, secret):
        await client.delete(secret, uid=secret.metadata.uid, missing_ok=True)
        secret = None
    if secret is None:
        secret = await _created(context)
    credential = _credential_in(secret)
    is_current = credential is not None and _is_current(context, credential)
    if credential is None or not is_current:
        credential = await _issue(context, secret)
    _mark(context, secret)
    await client.patch(secret)
    if not is_current:
        issued = f"Issued the kubeconfig {secret.key}, valid until {credential.expires:%Y-%m-%d %H:%M:%S} UTC"
        context.events.normal(user, "KubeConfigIssued", issued)
    _report(context, credential)


def _is_obsolete(user: User, secret: Secret) -> bool:
    """Whether the tokens that were in the Secret are to be refused from now on. Raises `NotYet`."""
    if not is_of_predecessor(user, secret):
        check_usable(user, secret, may_adopt=True)
    # Into one of another type a controller may put a token of its own, which does not expire.
    if not is_of(user, secret) or secret.immutable or secret.type not in ("", "Opaque"):
        return True
    credential = _credential_in(secret)
    if credential is None:
        # One that was filled has been changed by another client.
        return bool(secret.data) or CREDENTIAL in secret.metadata.annotations
    return credential.seconds != _expiration(user) or _due_rotation(user) not in (None, credential.rotated)


def _is_current(context: UserContext, credential: Credential) -> bool:
    account = context.service_account.metadata.uid
    return (credential.account, credential.server) == (account, _server(context)) and now() < credential.renewal


async def _created(context: UserContext) -> Secret:
    secret = Secret(metadata=context.metadata(kubeconfig_of(context.name), SYSTEM_NAMESPACE))
    _mark(context, secret)
    try:
        return await context.client.create(secret)
    except AlreadyExists:
        raise NotYet(f"another Secret {secret.key} is there still", after=1, reason="Terminating") from None


async def _issue(context: UserContext, secret: Secret) -> Credential:
    """Put a kubeconfig with a new token into the Secret, which is not written yet."""
    user, account, seconds = context.object, context.service_account, _expiration(context.object)
    answer = await context.client.token(account, expiration_seconds=seconds, bound_to=secret)
    text = context.config.to_kubeconfig(
        name=f"{context.name}@sealos", namespace=context.workspace, token=answer.status.token
    )
    expires, renewal = life_of(answer, seconds)
    credential = Credential(
        seconds=seconds,
        expires=expires,
        renewal=renewal,
        rotated=_due_rotation(user),
        account=account.metadata.uid,
        server=_server(context),
        hash=_hash(text),
    )
    secret.data = {KEY: base64.b64encode(text.encode()).decode()}
    secret.metadata.annotations[CREDENTIAL] = msgspec.json.encode(credential).decode()
    return credential


def life_of(answer: TokenRequest, seconds: int) -> tuple[datetime, datetime]:
    """When the token expires by the server's clock, which may have given it less, and when to renew it by ours."""
    issued, ours = answer.metadata.creation_timestamp or now(), now()
    expires = answer.status.expiration_timestamp or issued + timedelta(seconds=seconds)
    return expires, ours + RENEWAL * (expires - issued)


async def has_token_of(context: UserContext, account: ServiceAccount) -> bool:
    """Whether the kubeconfig was issued for this very service account, which is the User's then."""
    secret = await context.client.find(Secret, kubeconfig_of(context.name), namespace=SYSTEM_NAMESPACE)
    if secret is None or not is_of(context.object, secret):
        return False
    credential = _credential_in(secret)
    return credential is not None and credential.account == account.metadata.uid


def _mark(context: UserContext, secret: Secret) -> None:
    secret.metadata.annotations |= context.annotations
    secret.metadata.labels[OWNER] = context.name
    set_controller_reference(context.object, secret)


def _report(context: UserContext, credential: Credential) -> None:
    status, rotation = context.object.status, context.object.spec.kube_config_rotate_at
    status.kube_config_secret = KubeConfigSecret(
        namespace=SYSTEM_NAMESPACE,
        name=kubeconfig_of(context.name),
        hash=credential.hash,
        expiration_time=credential.expires,
    )
    status.observed_csr_expiration_seconds = credential.seconds
    status.observed_kube_config_rotate_at = credential.rotated
    is_awaited = rotation is not None and rotation > now()
    context.next_change = min(credential.renewal, rotation) if rotation and is_awaited else credential.renewal


def _credential_in(secret: Secret) -> Credential | None:
    """What is in the Secret; None unless it is just what was issued."""
    try:
        credential = msgspec.json.decode(secret.metadata.annotations.get(CREDENTIAL, ""), type=Credential)
        text = base64.b64decode(secret.data.get(KEY, "")).decode()
    except ValueError:
        return None
    return credential if secret.data.keys() == {KEY} and credential.hash == _hash(text) else None


def _due_rotation(user: User) -> datetime | None:
    """The time of rotation that has passed; None when there is none."""
    rotation = user.spec.kube_config_rotate_at
    return rotation if rotation is not None and rotation <= now() else None


def _expiration(user: User) -> int:
    return user.spec.csr_expiration_seconds or DEFAULT_EXPIRATION


def _server(context: UserContext) -> str:
    """Not of a rendered kubeconfig, which would cost more than all the rest of a reconcile that changes nothing."""
    tls = context.config.tls
    return _hash(repr((context.config.server, tls.ca, tls.verify, tls.server_name)))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
