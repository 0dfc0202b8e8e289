"""Resources within resources: what is embedded has an apiVersion, a kind and valid metadata."""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import mapping, text
from kubewright.controlplane.embedded.apimachinery.status import FieldError, invalid_value, required
from kubewright.controlplane.embedded.builtins.metadata import validate_metadata
from kubewright.controlplane.embedded.builtins.names import first_complaint, old_dns_label, path_segment
from kubewright.controlplane.embedded.schema.depth import check_depth

_NESTED = (dict, list)
_SEGMENT = first_complaint(path_segment)


class EmbeddedResources:
    """Checks `x-kubernetes-embedded-resource` of one schema, which is read once; other nodes are not visited."""

    def __init__(self, schema: JSONObject) -> None:
        check_depth(schema)
        self._root = _read(schema)

    def validate(self, obj: JSONValue) -> list[FieldError]:
        """What is wrong with the resources in an object."""
        return [] if self._root is None else list(self._root.check(obj, ""))


class _Node:
    __slots__ = ("embedded", "extra", "item", "properties")

    def __init__(self, schema: JSONObject) -> None:
        self.embedded = schema.get("x-kubernetes-embedded-resource") is True
        read = {name: _read(inner) for name, inner in mapping(schema, "properties").items()}
        self.properties = {name: node for name, node in read.items() if node is not None}
        self.extra = _read(schema.get("additionalProperties"))
        self.item = _read(schema.get("items"))

    @property
    def matters(self) -> bool:
        return bool(self.embedded or self.properties or self.extra or self.item)

    def check(self, value: JSONValue, path: str) -> Iterator[FieldError]:
        if isinstance(value, dict):
            if self.embedded:
                yield from _check_resource(value, path)
            for name, item in value.items():
                node = self.properties.get(name)
                if type(item) not in _NESTED:
                    continue
                if node is not None:
                    yield from node.check(item, f"{path}.{name}" if path else name)
                elif self.extra is not None:
                    yield from self.extra.check(item, f"{path}[{name}]")
        elif isinstance(value, list) and self.item is not None:
            for index, item in enumerate(value):
                yield from self.item.check(item, f"{path}[{index}]")


def _read(schema: JSONValue) -> _Node | None:
    if not isinstance(schema, dict):
        return None
    node = _Node(schema)
    return node if node.matters else None


def _check_resource(value: JSONObject, path: str) -> Iterator[FieldError]:
    for name in ("apiVersion", "kind"):
        if name not in value:
            yield required(f"{path}.{name}")
        elif value[name] == "":
            yield invalid_value(f"{path}.{name}", "", "must not be empty")
    api_version, kind = text(value, "apiVersion"), text(value, "kind")
    if api_version.count("/") > 1:
        yield invalid_value(f"{path}.apiVersion", api_version, f"unexpected GroupVersion string: {api_version}")
    if kind and (wrong := old_dns_label(kind.lower())):
        detail = f"may have mixed case, but should otherwise match: {','.join(wrong)}"
        yield invalid_value(f"{path}.kind", kind, detail)
    if "metadata" in value:
        metadata = mapping(value, "metadata")
        # An embedded resource needs no name, but the one it has must be possible.
        named: JSONObject = {"metadata": {**metadata, "name": text(metadata, "name") or "unnamed"}}
        namespaced = bool(text(metadata, "namespace"))
        yield from validate_metadata(named, namespaced=namespaced, validate_name=_SEGMENT, path=f"{path}.metadata")
