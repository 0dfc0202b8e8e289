"""The labels and annotations of a pod: those of the config follow it while the pod runs, as they need no restart.

Which ones are of the config is remembered in an annotation, so that one that goes from the config goes from the pod,
and what other clients have put there stays.
"""

from __future__ import annotations

from typing import Final

from msgspec import DecodeError, json

from kubewright import Model, ObjectMeta

from .names import CONFIG_KEYS, CONTENT_ID, RUNTIME_HANDLER, SPEC_HASH, STORAGE_LIMIT, labels_of
from .options import Options
from .types import Devbox

_FIXED: Final = {STORAGE_LIMIT, CONTENT_ID, SPEC_HASH, RUNTIME_HANDLER}
"""Annotations that say what a pod was made from."""


class ConfigKeys(Model):
    """What of a pod is of the config."""

    labels: list[str] = []
    annotations: list[str] = []


def pod_metadata(devbox: Devbox, options: Options, spec_hash: str) -> ObjectMeta:
    """The metadata of a pod that is made now. What is the operator's own cannot be configured."""
    config, own = devbox.spec.config, labels_of(devbox.metadata.name)
    fixed = {
        STORAGE_LIMIT: str(devbox.spec.storage_limit or options.storage_size),
        CONTENT_ID: devbox.status.content_id,
        SPEC_HASH: spec_hash,
    }
    if options.runtime_handler:
        fixed[RUNTIME_HANDLER] = options.runtime_handler
    keys = ConfigKeys(
        labels=sorted(config.labels.keys() - own.keys()),
        annotations=sorted(config.annotations.keys() - _FIXED - {CONFIG_KEYS}),
    )
    return ObjectMeta(
        name=devbox.metadata.name,
        namespace=devbox.metadata.namespace,
        labels={**config.labels, **own},
        annotations={**config.annotations, **fixed, CONFIG_KEYS: json.encode(keys).decode()},
    )


def follow(found: ObjectMeta, wanted: ObjectMeta) -> None:
    """Give a pod that is there the labels and annotations of one that is made now, but for what it was made from."""
    before = _config_keys(found)
    kept = {name: value for name, value in found.labels.items() if name not in before.labels}
    found.labels = {**kept, **wanted.labels}
    gone = set(before.annotations) - _FIXED
    kept = {name: value for name, value in found.annotations.items() if name not in gone}
    found.annotations = kept | {name: value for name, value in wanted.annotations.items() if name not in _FIXED}


def _config_keys(found: ObjectMeta) -> ConfigKeys:
    try:
        return json.decode(found.annotations.get(CONFIG_KEYS, "{}"), type=ConfigKeys)
    except DecodeError:  # another client has written there
        return ConfigKeys()
