"""Content negotiation: whether a client gets the object, its metadata alone, or a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from kubewright.controlplane.embedded.apimachinery.remembered import remembered
from kubewright.controlplane.embedded.apimachinery.status import StatusError

Representation: TypeAlias = Literal["object", "metadata", "table"]

_YAML = "application/yaml"
_MAX_RANGES = 256
"""Media ranges of an Accept header that are considered."""
_SUPPORTED = ("application/json", _YAML, "application/vnd.kubernetes.protobuf")
_STREAMED = tuple(f"{name};stream=watch" for name in _SUPPORTED if name != _YAML)


@dataclass(frozen=True, slots=True)
class MediaTypeOptions:
    """The first acceptable form, in the client's order of preference."""

    form: Representation = "object"
    yaml: bool = False
    group: str = ""
    version: str = ""
    kind: str = ""
    pretty: bool = False
    """Whether the response is indented."""

    @property
    def content_type(self) -> str:
        """The content type of the response."""
        return _YAML if self.yaml else "application/json"


@dataclass(frozen=True, slots=True)
class _Range:
    media_type: str
    parameters: dict[str, str]
    quality: float


# Clients send the same header with each request, so the few there are get parsed once.
@remembered(256)
def negotiate(accept: str, *, groups: tuple[str, ...] = ("meta.k8s.io", "apidiscovery.k8s.io")) -> MediaTypeOptions:
    """Read an Accept header. Raises 406 when nothing in it can be served: answers are JSON or YAML.

    `groups` are those of the forms that a response can be converted to: there is no table of a failure.
    """
    if not accept.strip():
        return MediaTypeOptions()
    for options in sorted(_ranges(accept), key=lambda item: -item.quality):
        if options.media_type in ("*/*", "application/*", "application/json"):
            found = _form(options.parameters)
        elif options.media_type == _YAML:
            found = _form(options.parameters, yaml=True)
        else:
            continue
        if found is not None and (not found.kind or found.group in groups):
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


def _form(parameters: dict[str, str], *, yaml: bool = False) -> MediaTypeOptions | None:
    # A stream of YAML documents has no framing for events.
    if parameters.get("stream") and (yaml or parameters["stream"] != "watch"):
        return None
    pretty = parameters.get("pretty") == "1"
    kind, group, version = (parameters.get(name, "") for name in ("as", "g", "v"))
    if not kind:
        return MediaTypeOptions("object", yaml, pretty=pretty)
    if group == "meta.k8s.io" and version in ("v1", "v1beta1"):
        if kind == "Table":
            return MediaTypeOptions("table", yaml, group, version, kind, pretty)
        if kind in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return MediaTypeOptions("metadata", yaml, group, version, kind, pretty)
    if (group, version, kind) == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"):
        return MediaTypeOptions("object", yaml, group, version, kind, pretty)
    return None


def _ranges(accept: str) -> list[_Range]:
    ranges: list[_Range] = []
    for text in accept.split(",", _MAX_RANGES)[:_MAX_RANGES]:
        media_type, *rest = (part.strip() for part in text.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 1.0
        ranges.append(_Range(media_type.lower(), parameters, quality))
    return ranges
