"""Tokens of service accounts in Secrets: they do not expire, and each is worth as much as the Secret that holds it."""

from __future__ import annotations

import base64
from collections.abc import Callable

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.apimachinery.status import not_found
from kubewright.controlplane.embedded.auth.tokens import LEGACY_ISSUER
from kubewright.controlplane.embedded.auth.users import UserInfo, service_account_groups, service_account_name

_CLAIM = "kubernetes.io/serviceaccount/"
_INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"


class InvalidSecretToken(Exception):
    """The token is no longer, or never was, that of its Secret. The message never holds the token."""


def secret_claims(namespace: str, account: str, account_uid: str, secret: str) -> JSONObject:
    """What the token of a Secret says: whose it is, and where it is stored."""
    return {
        "iss": LEGACY_ISSUER,
        "sub": service_account_name(namespace, account),
        f"{_CLAIM}namespace": namespace,
        f"{_CLAIM}secret.name": secret,
        f"{_CLAIM}service-account.name": account,
        f"{_CLAIM}service-account.uid": account_uid,
    }


def secret_token_user(token: str, claims: JSONObject, lookup: Callable[[str, str, str], JSONObject | None]) -> UserInfo:
    """The service account of a token with those claims. Raises InvalidSecretToken."""
    namespace, name = text(claims, f"{_CLAIM}namespace"), text(claims, f"{_CLAIM}service-account.name")
    uid, secret_name = text(claims, f"{_CLAIM}service-account.uid"), text(claims, f"{_CLAIM}secret.name")
    secret = lookup("secrets", namespace, secret_name)
    if secret is None or text(secret, "metadata", "deletionTimestamp"):
        raise InvalidSecretToken("Token has been invalidated")
    if base64.b64decode(text(secret, "data", "token")) != token.encode():
        raise InvalidSecretToken("Token does not match server's copy")
    account = lookup("serviceaccounts", namespace, name)
    if account is None:
        raise InvalidSecretToken(not_found("serviceaccounts", "", name).message)
    if text(account, "metadata", "deletionTimestamp"):
        raise InvalidSecretToken(f"ServiceAccount {namespace}/{name} has been deleted")
    found = text(account, "metadata", "uid")
    if found != uid:
        raise InvalidSecretToken(f"ServiceAccount UID ({found}) does not match claim ({uid})")
    if text(secret, "metadata", "labels", _INVALID_SINCE):
        raise InvalidSecretToken(
            f"the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has been marked "
            "invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the "
            f"'{_INVALID_SINCE}' label from the secret to temporarily allow use of this token"
        )
    return UserInfo(service_account_name(namespace, name), service_account_groups(namespace), uid)
