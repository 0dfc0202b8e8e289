"""Which form of an answer a client wants: the object, its metadata alone, or a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from kubewright.controlplane.embedded.status import StatusError

Form: TypeAlias = Literal["object", "metadata", "table"]

_SUPPORTED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The first acceptable form, in the client's order of preference."""

    form: Form = "object"
    yaml: bool = False
    group: str = ""
    version: str = ""
    kind: str = ""

    @property
    def content_type(self) -> str:
        """What the answer says it is."""
        return "application/yaml" if self.yaml else "application/json"


@dataclass(frozen=True, slots=True)
class _Range:
    media_type: str
    parameters: dict[str, str]
    quality: float


def negotiate(accept: str) -> Wanted:
    """Read an Accept header. Raises 406 when nothing in it can be served: answers are JSON or YAML."""
    if not accept.strip():
        return Wanted()
    for wanted in sorted(_ranges(accept), key=lambda item: -item.quality):
        if wanted.media_type in ("*/*", "application/*", "application/json"):
            found = _form(wanted.parameters)
        elif wanted.media_type == "application/yaml":
            found = _form(wanted.parameters, yaml=True)
        else:
            continue
        if found is not None:
            return found
    raise StatusError(
        406,
        "NotAcceptable",
        f"only the following media types are accepted: {', '.join(_SUPPORTED)}",
    )


def _form(parameters: dict[str, str], *, yaml: bool = False) -> Wanted | None:
    kind = parameters.get("as", "")
    group, version = parameters.get("g", ""), parameters.get("v", "")
    if not kind:
        return Wanted("object", yaml)
    if group == "meta.k8s.io" and version == "v1":
        if kind == "Table":
            return Wanted("table", yaml, group, version, kind)
        if kind in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return Wanted("metadata", yaml, group, version, kind)
    if (group, version, kind) == ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"):
        return Wanted("object", yaml, group, version, kind)
    return None


def _ranges(accept: str) -> list[_Range]:
    ranges: list[_Range] = []
    for text in accept.split(","):
        media_type, *rest = (part.strip() for part in text.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 1.0
        ranges.append(_Range(media_type.lower(), parameters, quality))
    return ranges
