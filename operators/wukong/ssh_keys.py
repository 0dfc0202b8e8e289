"""The public keys that may log in, from Secrets of users.

Of Secrets that are not ours only the metadata is in the cache. That is enough to know that one has not changed since it
was read.
"""

from __future__ import annotations

import re
from base64 import b64decode
from typing import NamedTuple

from kubewright import Client, Request
from kubewright.api.core.v1 import Secret
from kubewright.api.dynamic import metadata_only
from kubewright.patterns import NotYet

from .children import PART_LABEL
from .failures import SSHKeyMissing

KEY_NAMES = ("ssh-publickey", "id_rsa.pub", "authorized_keys", "publickey")
"""Where keys are looked for first."""
PUBLIC_KEY = re.compile(r"(?:^|\s)[a-z][-.@a-z0-9]+ +AAAA[A-Za-z0-9+/]*={0,2}(?:\s|$)")
"""In every line with a key, after its options: the type, and data that begins with the length of its name.

Nothing else is taken. What is taken can be read in the guest, by users who may create Wukongs and may not read Secrets.
"""

MAX_READ = 10_000
"""The Secrets whose keys are remembered: nothing says when no Wukong names one any more."""

SecretMetadata = metadata_only(Secret)


class _Read(NamedTuple):
    revision: str
    keys: list[str]


class SSHKeys:
    """Reads a Secret once for each of its revisions, and remembers those that were asked for last."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._read: dict[Request, _Read] = {}

    async def read(self, namespace: str, name: str) -> list[str]:
        """The keys in a Secret. Raises `NotYet` when it does not exist, `SSHKeyMissing` when there are none in it."""
        key = Request(namespace, name)
        there = await self._client.find(SecretMetadata, name, namespace=namespace)
        if there is not None and PART_LABEL in there.metadata.labels:
            # What is read from it would be written into it, or into that of a Wukong that reads ours, again and again.
            raise SSHKeyMissing(f"the Secret {name} is made for the cloud-init of a Wukong: name one with public keys")
        known = self._read.pop(key, None)
        if there is not None and known is not None and known.revision == there.metadata.resource_version:
            self._read[key] = known
            return _some(known.keys, name)
        secret = await self._client.find(Secret, name, namespace=namespace) if there is not None else None
        if secret is None:
            raise NotYet(f"the Secret {name} with the public keys does not exist", reason="SSHKeyMissing")
        known = self._read[key] = _Read(secret.metadata.resource_version, keys_in(secret))
        while len(self._read) > MAX_READ:
            del self._read[next(iter(self._read))]
        return _some(known.keys, name)


def _some(keys: list[str], name: str) -> list[str]:
    if not keys:
        raise SSHKeyMissing(f"the Secret {name} has no public key: put them into its {KEY_NAMES[0]}")
    return keys


def keys_in(secret: Secret) -> list[str]:
    """The keys of the first entry that has some, one of the usual names before all others."""
    found = {name: _keys_of(b64decode(value).decode(errors="replace")) for name, value in secret.data.items()}
    return next((found[name] for name in (*KEY_NAMES, *sorted(found)) if found.get(name)), list[str]())


def _keys_of(text: str) -> list[str]:
    lines = map(str.strip, text.splitlines())
    return [line for line in lines if PUBLIC_KEY.search(line) is not None and not line.startswith("#")]
