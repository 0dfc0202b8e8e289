"""From client-side to server-side apply: `kubectl apply` keeps what it applied last in an annotation.

Only the manager "kubectl" gets this: it may take over fields whose values are still those of the annotation, and the
annotation follows what it applies, so that client-side apply keeps working.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object, inside, mapping, text
from kubewright.controlplane.embedded.managedfields.checking import complaint
from kubewright.controlplane.embedded.managedfields.fieldset import Path, difference, has
from kubewright.controlplane.embedded.managedfields.shape import MergeShape, Untrackable
from kubewright.controlplane.embedded.managedfields.walks import changes, fields_of

_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_MAX_ANNOTATIONS_SIZE = 256 * 1024


def allowed_conflicts(live: JSONObject, api_version: str, shape: MergeShape) -> Callable[[Path], bool] | None:
    """A test whether a field has the value that client-side apply set last; None without client-side apply."""
    try:
        last = msgspec.json.decode(text(live, "metadata", "annotations", _ANNOTATION), type=dict)
    except (msgspec.DecodeError, RecursionError):
        return None
    if text(last, "apiVersion") != api_version or complaint(last, shape):
        return None
    try:
        fields, since = fields_of(last, shape), changes(last, live, shape)
    except Untrackable:
        return None
    for changed in (since.modified, since.added, since.removed):
        fields = difference(fields, changed)
    return lambda path: has(fields, path)


def agreed(result: JSONObject, applied: JSONObject) -> None:
    """Bring the annotation, where there is one, in line with what was applied."""
    annotations = mapping(result, "metadata", "annotations")
    if not annotations.get(_ANNOTATION):
        return
    configuration = copied_object(applied)
    mapping(configuration, "metadata", "annotations").pop(_ANNOTATION, None)
    value = json.dumps(configuration, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&":
        value = value.replace(character, f"\\u{ord(character):04x}")
    annotations = inside(result, "metadata", "annotations")
    annotations[_ANNOTATION] = value + "\n"
    size = sum(len(name.encode()) + len(str(text_).encode()) for name, text_ in annotations.items())
    if size > _MAX_ANNOTATIONS_SIZE:
        del annotations[_ANNOTATION]
