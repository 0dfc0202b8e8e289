"""Content negotiation: whether a client gets the object, its metadata alone, or a table, and encoded how."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from kubewright.controlplane.embedded.apimachinery.remembered import remembered
from kubewright.controlplane.embedded.apimachinery.status import StatusError

Representation: TypeAlias = Literal["object", "metadata", "table"]

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_MAX_RANGES = 256
"""Media ranges of an Accept header that are considered."""
_SUPPORTED = (JSON, YAML, PROTOBUF)
_STREAMED = tuple(f"{name};stream=watch" for name in _SUPPORTED if name != YAML)


@dataclass(frozen=True, slots=True)
class MediaTypeOptions:
    """The first acceptable form, in the client's order of preference."""

    form: Representation = "object"
    content_type: str = JSON
    group: str = ""
    version: str = ""
    kind: str = ""
    pretty: bool = False
    """Whether the response is indented."""


@dataclass(frozen=True, slots=True)
class _Range:
    media_type: str
    parameters: dict[str, str]
    quality: float


# Clients send the same header with each request, so the few there are get parsed once.
@remembered(256)
def negotiate(
    accept: str, *, groups: tuple[str, ...] = ("meta.k8s.io", "apidiscovery.k8s.io"), is_custom: bool = False
) -> MediaTypeOptions:
    """Read an Accept header. Raises 406 when nothing in it can be served.

    `groups` are those of the forms that a response can be converted to: there is no table of a failure. Of custom
    resources, only the metadata can be had as protobuf.
    """
    if not accept.strip():
        return MediaTypeOptions()
    for options in sorted(_ranges(accept), key=_preference):
        media_type = JSON if options.media_type in ("*/*", "application/*") else options.media_type
        if media_type not in _SUPPORTED:
            continue
        found = _form(options.parameters, media_type)
        if found is None or (found.kind and found.group not in groups):
            continue
        if media_type == PROTOBUF and (found.form == "table" or (is_custom and found.form == "object")):
            continue
        return found
    raise not_acceptable()


@remembered(256)
def check_representation(accept: str, available: tuple[str, ...] = _SUPPORTED, *, streamed: bool = False) -> None:
    """Raise 406 when not even the media type is one that a route has: those of built-in kinds refuse it themselves."""
    known = (*available, *_STREAMED) if streamed else available
    if accept.strip() and not any(found.media_type in ("*/*", *known) for found in _ranges(accept)):
        message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(known)}"
        raise StatusError(406, "NotAcceptable", message, details={})


def not_acceptable(*, watch: bool = False) -> StatusError:
    """406, with what would have been acceptable."""
    supported = _STREAMED if watch else _SUPPORTED
    return StatusError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(supported)}")


def _form(parameters: dict[str, str], media_type: str) -> MediaTypeOptions | None:
    # A stream of YAML documents has no framing for events.
    if parameters.get("stream") and (media_type == YAML or parameters["stream"] != "watch"):
        return None
    pretty = parameters.get("pretty") == "1"
    kind, group, version = (parameters.get(name, "") for name in ("as", "g", "v"))
    if not kind:
        return MediaTypeOptions("object", media_type, pretty=pretty)
    if group == "meta.k8s.io" and version in ("v1", "v1beta1"):
        if kind == "Table":
            return MediaTypeOptions("table", media_type, group, version, kind, pretty)
        if kind in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return MediaTypeOptions("metadata", media_type, group, version, kind, pretty)
    if (group, version, kind) == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"):
        return MediaTypeOptions("object", media_type, group, version, kind, pretty)
    return None


def _preference(options: _Range) -> tuple[float, bool]:
    """Of the same quality, what is named comes before what only matches."""
    return -options.quality, options.media_type.endswith("/*")


def _ranges(accept: str) -> list[_Range]:
    ranges: list[_Range] = []
    for text in accept.split(",", _MAX_RANGES)[:_MAX_RANGES]:
        media_type, *rest = (part.strip() for part in text.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 1.0
        if math.isnan(quality):
            quality = 1.0
        ranges.append(_Range(media_type.lower(), parameters, quality))
    return ranges
