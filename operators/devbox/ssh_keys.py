"""ed25519 key pairs in the formats of OpenSSH.

Needs the package `cryptography` (`pip install 'kubewright[webhooks]'`), which is imported when a key is made or read.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, NamedTuple

from kubewright import KubernetesError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes


class KeyPair(NamedTuple):
    """The private key as `ssh` reads it from a file, and the public one as it stands in `authorized_keys`."""

    private: str
    public: str

    def __repr__(self) -> str:
        return f"<key pair {self.public}>"


def new_key_pair() -> KeyPair:
    """A key pair of its own."""
    require_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return _written(Ed25519PrivateKey.generate())


def key_pair_of(private: str) -> KeyPair | None:
    """The pair of a private key of any type that OpenSSH has, in its format or in PEM; None of one with a passphrase,
    and of what is no such key.
    """
    require_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

    for load in (load_ssh_private_key, load_pem_private_key):
        try:
            return KeyPair(private, _public(load(private.encode(), password=None)))
        except (ValueError, TypeError, UnsupportedAlgorithm):
            continue
    return None


def require_cryptography() -> None:
    """Raise an error that says what to install, unless `cryptography` is there."""
    try:
        importlib.import_module("cryptography")
    except ImportError:
        raise KubernetesError(
            "the keys of a Devbox are made by the package cryptography, which is not installed: "
            "pip install 'kubewright[webhooks]'"
        ) from None


def _written(key: Ed25519PrivateKey) -> KeyPair:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode()
    return KeyPair(private, _public(key))


def _public(key: PrivateKeyTypes) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
