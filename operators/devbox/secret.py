"""The step that keeps the Secret of a Devbox: its key pair, its JWT secret and its environment for shells.

Keys are made once. What is missing is added, and what depends on another key is made of that.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from secrets import choice
from string import ascii_letters, digits

from kubewright import set_controller_reference
from kubewright.api.core.v1 import Secret
from kubewright.patterns import Done, step

from .context import SYNCED, DevboxContext
from .env_profile import env_profile
from .names import (
    AUTHORIZED_KEYS,
    ENV_PROFILE,
    JWT_SECRET,
    JWT_VARIABLE,
    PRIVATE_KEY,
    PUBLIC_KEY,
    metadata_of,
)
from .parts import find_part
from .ssh_keys import KeyPair, key_pair_of, new_key_pair
from .types import Devbox

_JWT_LENGTH = 32
_JWT_CHARACTERS = ascii_letters + digits


@step("SecretSynced")
async def secret(context: DevboxContext) -> Done:
    """Create the Secret with all of its keys, or add what it lacks."""
    devbox = context.object
    found = await find_part(context, Secret, devbox.metadata.name)
    wanted = found if found is not None else Secret(metadata=metadata_of(devbox, devbox.metadata.name), type="Opaque")
    lost_key = bool(wanted.data.get(PRIVATE_KEY)) and _key_pair(wanted) is None
    complete(wanted, devbox)
    wanted.metadata.labels |= metadata_of(devbox, "").labels
    set_controller_reference(devbox, wanted)
    if found is not None:
        await context.client.patch(wanted)
    else:
        await context.client.create(wanted)
        context.events.normal(devbox, "Created", f"Created secret {wanted.metadata.name}")
    if lost_key:
        context.events.warning(devbox, "KeyReplaced", "The private key could not be read: it was replaced by a new one")
    return SYNCED


def complete(secret: Secret, devbox: Devbox) -> None:
    """Add the keys that are missing, and have those that depend on others follow them."""
    pair = _key_pair(secret)
    if pair is None:
        pair = new_key_pair()
        secret.data[PRIVATE_KEY] = _encoded(pair.private)
        secret.data[AUTHORIZED_KEYS] = _encoded(pair.public)
    if _text(secret, PUBLIC_KEY).split()[:2] != pair.public.split():  # it may have a comment
        secret.data[PUBLIC_KEY] = _encoded(pair.public)
    if not _text(secret, AUTHORIZED_KEYS):
        secret.data[AUTHORIZED_KEYS] = _encoded(pair.public)
    if not _text(secret, JWT_SECRET):
        secret.data[JWT_SECRET] = _encoded("".join(choice(_JWT_CHARACTERS) for _ in range(_JWT_LENGTH)))
    variables = {each.name: each.value or "" for each in devbox.spec.config.env if each.value_from is None}
    profile = _encoded(env_profile({**variables, JWT_VARIABLE: _text(secret, JWT_SECRET)}))
    if secret.data.get(ENV_PROFILE) != profile:
        secret.data[ENV_PROFILE] = profile


def _key_pair(secret: Secret) -> KeyPair | None:
    private = _text(secret, PRIVATE_KEY)
    return key_pair_of(private) if private else None


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _text(secret: Secret, key: str) -> str:
    # Other clients may have put there what is no text.
    return b64decode(secret.data.get(key, "")).decode(errors="replace")
