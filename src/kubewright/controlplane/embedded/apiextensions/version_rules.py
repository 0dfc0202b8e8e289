"""The rules of one version in a definition: its schema, subresources, columns and selectable fields."""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apiextensions.default_rules import check_defaults
from kubewright.controlplane.embedded.apiextensions.internal_form import GO_NAMES, shown_schema
from kubewright.controlplane.embedded.apiextensions.openapi_rules import check_schema
from kubewright.controlplane.embedded.apimachinery.document import mapping, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
)
from kubewright.controlplane.embedded.cel.field_path import field_path
from kubewright.controlplane.embedded.schema.depth import TooDeep, check_depth
from kubewright.controlplane.embedded.schema.rules import check_rules
from kubewright.controlplane.embedded.schema.structural import check_structural, is_set, unsupported

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAX_SELECTABLE = 8
_SELECTABLE_TYPES = ("string", "boolean", "integer")
# With a status subresource, the schema of the status is taken out by itself; these do not get lost by that.
_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations"
)
_IF_STATUS = "at the root of the schema if the status subresource is enabled"


def check_validation(validation: JSONValue, path: str, *, has_status: bool) -> Iterator[FieldError]:
    """What is wrong with the `schema` of a version; `path` leads to what holds the `openAPIV3Schema`."""
    schema = mapping(validation).get("openAPIV3Schema")
    if not isinstance(schema, dict):
        return
    where = f"{path}.openAPIV3Schema"
    try:
        check_depth(schema)
    except TooDeep as error:
        yield invalid_value(where, "", str(error))
        return
    errors = list(_root_with_status(schema, where)) if has_status else []
    if schema.get("nullable") is True:
        errors.append(forbidden_field(f"{where}.nullable", "nullable cannot be true at the root"))
    reason = unsupported(schema)
    unstructured = [] if reason else check_structural(schema, where) or list(check_defaults(schema, where))
    errors += unstructured
    errors += check_schema(schema, where)
    if not errors and reason:
        errors.append(invalid_value(where, "", reason))
    yield from errors or check_rules(schema, where)


def _root_with_status(schema: JSONObject, where: str) -> Iterator[FieldError]:
    allowed = _AT_ROOT.split()
    for name, go_name in GO_NAMES.items():
        if not is_set(schema.get(name)):
            continue
        if name == "type":
            if schema["type"] != "object":
                detail = f'only "object" is allowed as the type {_IF_STATUS}'
                yield invalid_value(f"{where}.type", schema["type"], detail)
                return
        elif go_name not in allowed:
            detail = f"only [{_AT_ROOT}] fields are allowed {_IF_STATUS}"
            yield invalid_value(where, shown_schema(schema), detail)
            return


def check_deprecation(version: JSONObject, path: str) -> Iterator[FieldError]:
    """What is wrong with the warning of a deprecated version."""
    warning = version.get("deprecationWarning")
    if not isinstance(warning, str):
        return
    where = f"{path}.deprecationWarning"
    if version.get("deprecated") is not True:
        yield invalid_value(where, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > 256:
        yield invalid_value(where, warning, "must be <= 256 characters long")
    if not warning:
        yield invalid_value(where, warning, "must not be an empty string")
    for index, character in enumerate(warning):
        if not character.isprintable():
            at = len(warning[:index].encode())
            detail = f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
            yield invalid_value(where, warning, detail)
            return


def check_subresources(subresources: JSONValue, path: str) -> Iterator[FieldError]:
    """What is wrong with the paths of a scale subresource."""
    scale = mapping(subresources).get("scale")
    if not isinstance(scale, dict):
        return
    for name, prefix in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        json_path = text(scale, name)
        where = f"{path}.scale.{name}"
        if not json_path:
            yield required(where)
        elif error := _not_simple(json_path, where):
            yield error
        elif not json_path.startswith(prefix):
            yield invalid_value(where, json_path, f"should be a json path under {prefix.removesuffix('.')}")
    selector = text(scale, "labelSelectorPath")
    where = f"{path}.scale.labelSelectorPath"
    if selector and (error := _not_simple(selector, where)):
        yield error
    elif selector and not selector.startswith((".spec.", ".status.")):
        yield invalid_value(where, selector, "should be a json path under either .spec or .status")


def _not_simple(json_path: str, where: str) -> FieldError | None:
    if json_path.startswith("."):
        return None
    return invalid_value(where, json_path, "must be a simple json path starting with .")


def check_columns(columns: list[JSONValue], path: str) -> Iterator[FieldError]:
    """What is wrong with the additional printer columns."""
    for index, column in enumerate(columns):
        where = f"{path}[{index}]"
        if not text(column, "name"):
            yield required(f"{where}.name")
        type_, format_, json_path = text(column, "type"), text(column, "format"), text(column, "jsonPath")
        detail = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not type_:
            yield required(f"{where}.type", detail)
        elif type_ not in _COLUMN_TYPES:
            yield invalid_value(f"{where}.type", type_, detail)
        if format_ and format_ not in _COLUMN_FORMATS:
            yield invalid_value(f"{where}.format", format_, f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not json_path:
            yield required(f"{where}.JSONPath")
        elif error := _not_simple(json_path, f"{where}.JSONPath"):
            yield error


def check_selectable(fields: list[JSONValue], schema: JSONObject, path: str) -> Iterator[FieldError]:
    """What is wrong with the fields that selectors may use."""
    seen: set[tuple[str, ...]] = set()
    for index, field in enumerate(fields):
        where = f"{path}[{index}].jsonPath"
        json_path = text(field, "jsonPath")
        if not json_path:
            yield required(where)
            continue
        try:
            steps, _, found = field_path(json_path, schema, brackets=False)
        except ValueError as error:
            yield invalid_value(where, json_path, f"is an invalid path: {error.args[0]}")
            continue
        if steps[:1] == ("metadata",):
            yield invalid_value(where, json_path, "must not point to fields in metadata")
        if text(found, "type") not in _SELECTABLE_TYPES:
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield invalid_value(where, json_path, detail)
        if steps in seen:
            yield duplicate(where, json_path)
        seen.add(steps)
    if len(seen) > _MAX_SELECTABLE:
        yield FieldError("FieldValueTooMany", path, len(seen), f"must have at most {_MAX_SELECTABLE} items")
