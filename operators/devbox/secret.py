"""The step that keeps the Secret of a Devbox: its key pair, its JWT secret and its environment for shells.

Keys are made once. What is missing is added, and what depends on another key is made of that. A private key that is
there is never replaced.
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
from .parts import find_part, take_over
from .ssh_keys import key_pair_of, new_key_pair
from .types import Devbox

_JWT_LENGTH = 32
_JWT_CHARACTERS = ascii_letters + digits


@step("SecretSynced")
async def secret(context: DevboxContext) -> Done:
    """Create the Secret with all of its keys, or add what it lacks."""
    devbox = context.object
    found = await find_part(context, Secret, devbox.metadata.name)
    wanted = found if found is not None else Secret(metadata=metadata_of(devbox, devbox.metadata.name), type="Opaque")
    is_readable = complete(wanted, devbox)
    wanted.metadata.labels |= metadata_of(devbox, "").labels
    if found is not None:
        await take_over(context, wanted)
        await context.client.patch(wanted, lock=True)  # what is missing here may be there by now
    else:
        set_controller_reference(devbox, wanted)
        await context.client.create(wanted)
        context.events.normal(devbox, "Created", f"Created secret {wanted.metadata.name}")
    return SYNCED if is_readable else _unreadable(context)


def complete(secret: Secret, devbox: Devbox) -> bool:
    """Add the keys that are missing, and have those that depend on others follow them.

    A private key that cannot be read stays as it is, and so does the public key beside it: False is returned.
    """
    is_readable = _complete_keys(secret)
    if not _text(secret, JWT_SECRET):
        secret.data[JWT_SECRET] = _encoded("".join(choice(_JWT_CHARACTERS) for _ in range(_JWT_LENGTH)))
    variables = {each.name: each.value or "" for each in devbox.spec.config.env if each.value_from is None}
    profile = _encoded(env_profile({**variables, JWT_VARIABLE: _text(secret, JWT_SECRET)}))
    if secret.data.get(ENV_PROFILE) != profile:
        secret.data[ENV_PROFILE] = profile
    return is_readable


def _complete_keys(secret: Secret) -> bool:
    private, public = _text(secret, PRIVATE_KEY), _text(secret, PUBLIC_KEY)
    is_missing = not private.strip()
    pair = new_key_pair() if is_missing else key_pair_of(private)
    if is_missing and pair is not None:
        secret.data[PRIVATE_KEY] = _encoded(pair.private)
    if pair is not None and public.split()[:2] != pair.public.split():  # it may have a comment
        lines = _text(secret, AUTHORIZED_KEYS).splitlines()
        others = [line for line in lines if line.strip() and not _is_same(line, public, pair.public)]
        if is_missing or any(_is_same(line, public) for line in lines):
            secret.data[AUTHORIZED_KEYS] = _encoded("".join(f"{line}\n" for line in others) + pair.public)
        secret.data[PUBLIC_KEY] = _encoded(pair.public)
    if not _text(secret, AUTHORIZED_KEYS) and _text(secret, PUBLIC_KEY):
        secret.data[AUTHORIZED_KEYS] = secret.data[PUBLIC_KEY]
    for key in (PUBLIC_KEY, AUTHORIZED_KEYS):
        secret.data.setdefault(key, "")  # no pod starts that mounts a key which is not there
    return pair is not None


def _is_same(line: str, *keys: str) -> bool:
    """Whether it is one of these public keys, whatever its comment."""
    key = line.split()[:2]
    return bool(key) and key in [each.split()[:2] for each in keys]


def _unreadable(context: DevboxContext) -> Done:
    name = context.object.metadata.name
    message = (
        f"{PRIVATE_KEY} of the Secret {name} is not a private key for SSH, or has a passphrase: it is kept, and so is "
        "the public key. Correct it, or remove it to have a new pair made"
    )
    return context.degraded("SecretSynced", "KeyUnreadable", message)


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def _text(secret: Secret, key: str) -> str:
    # Other clients may have put there what is no text.
    return b64decode(secret.data.get(key, "")).decode(errors="replace")
