"""Authentication by client certificate, static token or service account token; anonymous otherwise.

A client certificate comes first; a bad token beside a good certificate is ignored, as in Kubernetes. That the
certificate was signed by our authority, the TLS layer has checked already; whether it has expired is checked here, by
the server's clock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from cryptography import x509
from cryptography.x509.oid import NameOID

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError, not_found
from kubewright.controlplane.embedded.auth.quoting import quoted_list
from kubewright.controlplane.embedded.auth.secret_tokens import InvalidSecretToken, secret_token_user
from kubewright.controlplane.embedded.auth.tokens import LEGACY_ISSUER, BadSignature, TokenSigner
from kubewright.controlplane.embedded.auth.users import (
    ANONYMOUS_USER,
    CREDENTIAL_ID,
    NODE_NAME,
    NODE_UID,
    POD_NAME,
    POD_UID,
    UserInfo,
    authenticated,
    service_account_groups,
    service_account_name,
)

Lookup: TypeAlias = Callable[[str, str, str], JSONObject | None]
"""Finds the stored object of (plural, namespace, name) of the core group: serviceaccounts, pods, secrets, nodes."""

_LEEWAY = 60.0
"""The clock skew that is allowed at both ends of a token's validity: a minute."""
_UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
_REMEMBERED = 1024


class BadToken(Exception):
    """An invalid bearer token. The message is shown in TokenReviews and never holds the token."""

    def __init__(self, why: str = "") -> None:
        super().__init__(f"[invalid bearer token, {why}]" if why else "invalid bearer token")


class TokenUser(NamedTuple):
    """Whose token it is, and for which of the requested audiences it is valid."""

    user: UserInfo
    audiences: tuple[str, ...]


def unauthorized() -> StatusError:
    """401. It has no reason, so as not to inform an unknown client."""
    return StatusError(401, "Unauthorized", "Unauthorized")


class Authenticator:
    """Knows the users of one server.

    Guarantee: a service account token is worth nothing as soon as it has expired, or its service account or the object
    it is bound to or stored in was deleted or replaced; nothing of that is cached between requests. A
    certificate is worth nothing once it has expired.
    """

    def __init__(
        self,
        signer: TokenSigner,
        lookup: Lookup,
        *,
        clock: Callable[[], float],
        tokens: Mapping[str, UserInfo] | None = None,
        audiences: Sequence[str] = (),
    ) -> None:
        self._signer = signer
        self._lookup = lookup
        self._clock = clock
        self._tokens = tokens or {}
        self.audiences = tuple(audiences) or (signer.issuer,)
        self._claims: dict[str, JSONObject] = {}

    def authenticate(self, certificate: bytes | None, authorization: str | None) -> UserInfo:
        """The user of a request with this client certificate (DER) and `Authorization` header. Raises the 401."""
        has_expired = False
        if certificate is not None:
            user, end = user_of_certificate(certificate)
            has_expired = self._clock() > end
            if user is not None and not has_expired:
                return user
        token = _bearer_token(authorization) if authorization else ""
        if not token:
            if has_expired:
                raise unauthorized()
            return ANONYMOUS_USER
        try:
            return self.user_of_token(token, self.audiences).user
        except BadToken:
            raise unauthorized() from None

    def user_of_token(self, token: str, audiences: Sequence[str]) -> TokenUser:
        """The owner of a token that is valid for at least one of the audiences. Raises BadToken."""
        known = self._tokens.get(token)
        if known is not None:
            # Static tokens have no audience of their own: they are for this server.
            shared = tuple(audience for audience in audiences if audience in self.audiences)
            if not shared:
                raise BadToken
            return TokenUser(authenticated(known), shared)
        claims = self._verified(token)
        accepted: Sequence[JSONValue] = items(claims, "aud")
        is_of_secret = claims["iss"] == LEGACY_ISSUER
        if is_of_secret:
            accepted = self.audiences
        shared = tuple(audience for audience in audiences if audience in accepted)
        if not shared:
            named = [audience for audience in accepted if isinstance(audience, str)]
            raise BadToken(
                f"token audiences {quoted_list(named)} is invalid for the target audiences {quoted_list(audiences)}"
            )
        if not is_of_secret:
            return TokenUser(authenticated(self._service_account(claims)), shared)
        try:
            return TokenUser(authenticated(secret_token_user(token, claims, self._lookup)), shared)
        except InvalidSecretToken as error:
            raise BadToken(str(error)) from None

    def _verified(self, token: str) -> JSONObject:
        # Whether a signature is good never changes, and checking it costs more than everything else here.
        claims = self._claims.get(token)
        if claims is None:
            try:
                claims = self._signer.verified(token)
            except BadSignature as error:
                raise BadToken(str(error)) from None
            if claims is None:
                raise BadToken
            if len(self._claims) >= _REMEMBERED:
                self._claims.clear()
            self._claims[token] = claims
        return claims

    def _service_account(self, claims: JSONObject) -> UserInfo:
        now = self._clock()
        if now + _LEEWAY < _seconds(claims, "nbf", 0.0):
            raise BadToken("service account token is not valid yet")
        if now - _LEEWAY > _seconds(claims, "exp", float("inf")):
            raise BadToken("service account token has expired")
        if now + _LEEWAY < _seconds(claims, "iat", 0.0):
            raise BadToken("service account token is issued in the future")
        about = mapping(claims, "kubernetes.io")
        namespace, name = text(about, "namespace"), text(about, "serviceaccount", "name")
        uid = text(about, "serviceaccount", "uid")
        account = self._lookup("serviceaccounts", namespace, name)
        if account is None:
            raise BadToken(not_found("serviceaccounts", "", name).message)
        found = text(account, "metadata", "uid")
        if found != uid:
            raise BadToken(f"service account UID ({found}) does not match claim ({uid})")
        if self._is_gone(account, now):
            raise BadToken(f"service account {namespace}/{name} has been deleted")
        extra: dict[str, tuple[str, ...]] = {}
        self._check_bound("secret", namespace, about, now)
        if self._check_bound("pod", namespace, about, now):
            extra[POD_NAME] = (text(about, "pod", "name"),)
            extra[POD_UID] = (text(about, "pod", "uid"),)
        else:
            self._check_bound("node", "", about, now)
        if identifier := text(claims, "jti"):
            extra[CREDENTIAL_ID] = (f"JTI={identifier}",)
        # The node of a pod's token is shown, not checked: the pod itself may outlive it.
        if node := text(about, "node", "name"):
            extra[NODE_NAME] = (node,)
            if node_uid := text(about, "node", "uid"):
                extra[NODE_UID] = (node_uid,)
        return UserInfo(service_account_name(namespace, name), service_account_groups(namespace), uid, extra)

    def _check_bound(self, kind: str, namespace: str, about: JSONObject, now: float) -> bool:
        """Whether the token is bound to an object of this kind; raises BadToken when that object is not there."""
        bound = at(about, kind)
        if not isinstance(bound, dict):
            return False
        stored = self._lookup(f"{kind}s", namespace, text(bound, "name"))
        if stored is None:
            raise BadToken("service account token has been invalidated")
        found, uid = text(stored, "metadata", "uid"), text(bound, "uid")
        if found != uid:
            raise BadToken(f"{kind} UID ({found}) does not match service account {kind} ref claim ({uid})")
        if self._is_gone(stored, now):
            raise BadToken("service account token has been invalidated")
        return True

    def _is_gone(self, stored: JSONObject, now: float) -> bool:
        deleted = text(stored, "metadata", "deletionTimestamp")
        return bool(deleted) and datetime.fromisoformat(deleted).timestamp() < now - _LEEWAY


@lru_cache(_REMEMBERED)
def user_of_certificate(certificate: bytes) -> tuple[UserInfo | None, float]:
    """The user of a client certificate (DER) and the Unix time of its end.

    The user is the common name, in the organizations; None without a common name.
    """
    parsed = x509.load_der_x509_certificate(certificate)
    subject, end = parsed.subject, parsed.not_valid_after_utc.timestamp()
    names = _values(subject, NameOID.COMMON_NAME)
    if not names or not names[-1]:
        return None, end
    uids = _values(subject, _UID)
    if len(uids) > 1 or uids == ("",):
        raise unauthorized()
    credential = f"X509SHA256={hashlib.sha256(certificate).hexdigest()}"
    user = UserInfo(
        names[-1],
        _values(subject, NameOID.ORGANIZATION_NAME),
        uids[0] if uids else "",
        {CREDENTIAL_ID: (credential,)},
    )
    return authenticated(user), end


def _values(subject: x509.Name, kind: x509.ObjectIdentifier) -> tuple[str, ...]:
    return tuple(
        found.value if isinstance(found.value, str) else found.value.decode(errors="replace")
        for found in subject.get_attributes_for_oid(kind)
    )


def _bearer_token(authorization: str) -> str:
    parts = authorization.strip().split(" ", 2)
    return parts[1] if len(parts) > 1 and parts[0].lower() == "bearer" else ""


def _seconds(claims: JSONObject, name: str, default: float) -> float:
    value: JSONValue = claims.get(name)
    return default if value is None or isinstance(value, str | list | dict) else float(value)
