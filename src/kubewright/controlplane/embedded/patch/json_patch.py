"""JSON patches: RFC 6902, with what Kubernetes' implementation does differently.

- `test` of an absent field against null succeeds, as does one without a value.
- `replace` of an absent field adds it, `copy` from an absent field adds null; `add` without a value adds null.
- Indices may be negative (-1 is the last item; for `add`, the end), and what precedes the first slash is ignored.

`test` compares values. kube-apiserver compares their JSON text, so that there a string with `<`, `>` or `&` is equal
only when the client escapes these as Go does, and one with other characters only when it does not.

Every operation that does not apply is answered alike, as the server does. Where kube-apiserver would panic and drop the
connection (`replace` of the whole document without a value), that is the answer too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

from msgspec import Raw

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied
from kubewright.controlplane.embedded.apimachinery.go_values import json_kind, json_text
from kubewright.controlplane.embedded.apimachinery.nesting import cut_again, encoded, opened
from kubewright.controlplane.embedded.apimachinery.status import StatusError, bad_request
from kubewright.controlplane.embedded.patch.result import DoesNotApply, checked

MAX_OPERATIONS = 10_000
MAX_COPIED_BYTES = 3 * 1024 * 1024

_Container: TypeAlias = "JSONObject | list[JSONValue]"


def apply_json_patch(document: JSONObject, patch: JSONValue, *, lenient: bool = False) -> JSONObject:
    """The document after all operations; neither it nor the patch is changed, and untouched parts are shared.

    `lenient` treats malformed operations as `fieldValidation=Ignore` does: as ones that do not apply.
    """
    operations = _decoded(patch, lenient)
    if len(operations) > MAX_OPERATIONS:
        raise StatusError(
            413,
            "RequestEntityTooLarge",
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MAX_OPERATIONS}, got {len(operations)}",
        )
    draft = _Draft(document)
    for operation in operations:
        try:
            draft.apply(operation)
        except DoesNotApply as error:
            error.operation = operation
            raise
    return checked(draft.result())


def unknown_fields(patch: JSONValue) -> list[str]:
    """Warnings, or errors of strict field validation, about unknown fields of operations."""
    return [
        f'json patch unknown field "[{index}].{name}"'
        for index, operation in enumerate(patch if isinstance(patch, list) else ())
        if isinstance(operation, dict)
        for name in operation
        if name not in ("op", "path", "from", "value")
    ]


def _decoded(patch: JSONValue, lenient: bool) -> Sequence[JSONObject]:
    if patch is None:
        return ()
    prefix = "" if lenient else "error decoding patch: "
    if not isinstance(patch, list):
        wanted = "jsonpatch.Patch" if lenient else "[]handlers.jsonPatchOp"
        raise bad_request(f"{prefix}json: cannot unmarshal {json_kind(patch)} into Go value of type {wanted}")
    operations: list[JSONObject] = []
    for operation in patch:
        if isinstance(operation, dict):
            if not lenient:
                _require_strings(operation)
            operations.append(operation)
        elif operation is None:
            operations.append({})
        else:
            wanted = "jsonpatch.Operation" if lenient else "handlers.jsonPatchOp"
            raise bad_request(f"{prefix}json: cannot unmarshal {json_kind(operation)} into Go value of type {wanted}")
    return operations


def _require_strings(operation: JSONObject) -> None:
    for name, value in operation.items():
        if name in ("op", "path", "from") and not isinstance(value, str) and value is not None:
            raise bad_request(
                f"error decoding patch: json: cannot unmarshal {json_kind(value)} into Go struct field "
                f"jsonPatchOp.{name} of type string"
            )


class _Draft:
    """A document under change. A container is copied before the first write to it, and only then."""

    def __init__(self, document: JSONObject) -> None:
        self.root: _Container = document
        # Kept by reference too, so that no id is given to another object.
        self._own: dict[int, _Container] = {}
        self._copied_bytes = 0
        self._is_opened = False

    def result(self) -> JSONValue:
        return cut_again(self.root) if self._is_opened else self.root

    def apply(self, operation: JSONObject) -> None:
        match operation.get("op"):
            case "add":
                self._add(_pointer(operation, "path"), operation.get("value"))
            case "remove":
                self._remove(_pointer(operation, "path"))
            case "replace":
                self._replace(_pointer(operation, "path"), operation.get("value"))
            case "move":
                value = self._remove(_pointer(operation, "from"))
                self._add(_pointer(operation, "path"), value)
            case "copy":
                self._copy(_pointer(operation, "from"), _pointer(operation, "path"))
            case "test":
                path = _pointer(operation, "path")
                found: JSONValue = self.root if path == "" else _item(*self._find(path))
                if not _equal(found, operation.get("value")):
                    raise DoesNotApply(is_test=True)
            case _:
                raise DoesNotApply()

    def _add(self, path: str, value: JSONValue) -> None:
        container, key = self._find(path, write=True)
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_index(key, len(container) + 1), value)

    def _remove(self, path: str) -> JSONValue:
        container, key = self._find(path, write=True)
        if isinstance(container, list):
            return container.pop(_index(key, len(container)))
        if key not in container:
            raise DoesNotApply()
        return container.pop(key)

    def _replace(self, path: str, value: JSONValue) -> None:
        if path == "":
            if not isinstance(value, (dict, list)):
                raise DoesNotApply()
            self.root = value
            return
        container, key = self._find(path, write=True)
        if isinstance(container, dict):
            container[key] = value
        else:
            container[_index(key, len(container))] = value

    def _copy(self, source: str, path: str) -> None:
        value = copied(_item(*self._find(source)))
        self._copied_bytes += len(json_text(value)) if value is not None else 0
        if self._copied_bytes > MAX_COPIED_BYTES:
            raise DoesNotApply()
        self._add(path, value)

    def _find(self, path: str, *, write: bool = False) -> tuple[_Container, str]:
        """The container of what the path points at, and its key there; with `write` one that may be changed."""
        _, *steps = path.split("/")
        if not steps:
            raise DoesNotApply()
        *parents, last = (step.replace("~1", "/").replace("~0", "~") for step in steps)
        container = self.root
        if write:
            container = self.root = self._owned(container)
        for key in parents:
            found = _item(container, key)
            inner = opened(found)
            self._is_opened |= inner is not found
            if not isinstance(inner, (dict, list)):
                raise DoesNotApply()
            if write:
                inner = self._owned(inner)
                if isinstance(container, dict):
                    container[key] = inner
                else:
                    container[_index(key, len(container))] = inner
            container = inner
        return container, last

    def _owned(self, container: _Container) -> _Container:
        if id(container) in self._own:
            return container
        own: _Container = dict(container) if isinstance(container, dict) else list(container)
        self._own[id(own)] = own
        return own


def _pointer(operation: JSONObject, name: str) -> str:
    path = operation.get(name)
    if not isinstance(path, str):
        raise DoesNotApply()
    return path


def _item(container: _Container, key: str) -> JSONValue:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(key, len(container))]


_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


def _index(key: str, length: int) -> int:
    """The index of a key in a list of `length` items."""
    if _INTEGER.fullmatch(key) is None or not -length <= int(key) < length:
        raise DoesNotApply()
    return int(key) % length


def _equal(found: JSONValue | Raw, expected: JSONValue | Raw) -> bool:
    """Whether two values would be written alike: 1 and 1.0, or 1 and true, are not the same."""
    if isinstance(found, Raw) or isinstance(expected, Raw):
        # What is text in one need not be in the other, which may begin at another level.
        return encoded(found) == encoded(expected)
    if isinstance(found, dict):
        return (
            isinstance(expected, dict)
            and found.keys() == expected.keys()
            and all(_equal(value, expected[name]) for name, value in found.items())
        )
    if isinstance(found, list):
        return (
            isinstance(expected, list)
            and len(found) == len(expected)
            and all(_equal(mine, other) for mine, other in zip(found, expected, strict=True))
        )
    # A stored number without a fraction is written without one, even when it came with ".0".
    alike = type(found) is type(expected) or (isinstance(found, float) and type(expected) is int)
    return alike and found == expected
