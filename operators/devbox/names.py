"""How the objects of a Devbox are called and marked: facts of the API that other programs rely on."""

from __future__ import annotations

from typing import Final

from kubewright import ObjectMeta
from kubewright.api import Object

GROUP: Final = "devbox.sealos.io"
FINALIZER: Final = f"{GROUP}/finalizer"

STORAGE_LIMIT: Final = f"{GROUP}/storage-limit"
"""An annotation of pods: how much their content may grow to."""
CONTENT_ID: Final = f"{GROUP}/content-id"
"""An annotation of pods, and a label of volumes and commits: the content that they are about."""
BASE_IMAGE: Final = f"{GROUP}/base-image"
"""An annotation of claims: what their content begins from."""
ROLE: Final = f"{GROUP}/role"
"""A label of volumes: CONTENT or ARCHIVE."""
SPEC_HASH: Final = f"{GROUP}/spec-hash"
"""An annotation of pods: what they were made from."""
CONFIG_KEYS: Final = f"{GROUP}/config-keys"
"""An annotation of pods: which of their labels and annotations are those of the config."""
RUNTIME_HANDLER: Final = "io.containerd.cri.runtime-handler"

CONTENT: Final = "content"
ARCHIVE: Final = "archive"

NAME_LABEL: Final = "app.kubernetes.io/name"
LABELS: Final = {"app.kubernetes.io/managed-by": "sealos", "app.kubernetes.io/part-of": "devbox"}
"""All that the operator makes has these, and the name of its Devbox besides."""

COMMIT_SUFFIX: Final = "-commit"
MAX_NAME_LENGTH: Final = 63 - len(COMMIT_SUFFIX)
"""The name of a Job is a label of its pods. No container that fills a volume has a longer suffix."""

JWT_SECRET: Final = "SEALOS_DEVBOX_JWT_SECRET"  # noqa: S105  # the name of a key, not the secret
PUBLIC_KEY: Final = "SEALOS_DEVBOX_PUBLIC_KEY"
PRIVATE_KEY: Final = "SEALOS_DEVBOX_PRIVATE_KEY"
AUTHORIZED_KEYS: Final = "SEALOS_DEVBOX_AUTHORIZED_KEYS"
ENV_PROFILE: Final = "SEALOS_DEVBOX_ENV_PROFILE"
JWT_VARIABLE: Final = "DEVBOX_JWT_SECRET"
"""The variable of the container that has the JWT secret."""


def labels_of(name: str) -> dict[str, str]:
    """The labels of everything that a Devbox of that name has; services select its pod by them."""
    return {NAME_LABEL: name, **LABELS}


def metadata_of(devbox: Object, name: str, **labels: str) -> ObjectMeta:
    """The metadata of a part of a Devbox."""
    meta = devbox.metadata
    return ObjectMeta(name=name, namespace=meta.namespace, labels={**labels_of(meta.name), **labels})


def service_of(devbox: Object) -> str:
    """The name of the Service with node ports."""
    return f"{devbox.metadata.name}-svc"


def commit_of(devbox: Object) -> str:
    """The name of the Job that commits the content; there is one at a time."""
    return f"{devbox.metadata.name}{COMMIT_SUFFIX}"


def claim_of(devbox: Object, content_id: str, role: str = CONTENT) -> str:
    """The name of the claim of the volume with a content, or of that with its archive."""
    name = f"{devbox.metadata.name}-{content_id}"
    return name if role == CONTENT else f"{name}-{role}"
