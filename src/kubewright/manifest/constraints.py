"""`msgspec.Meta` as OpenAPI keywords: bounds, lengths, patterns, title and description of one field.

The same `Meta` is enforced by msgspec in Python, so that both sides refuse the same values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Meta

from kubewright.api.codec import to_json
from kubewright.api.markers import JSONValue
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.pattern import incompatibility

_NUMBER: Final = {"ge": "minimum", "gt": "minimum", "le": "maximum", "lt": "maximum", "multiple_of": "multipleOf"}
_TEXT: Final = {"pattern": "pattern", "min_length": "minLength", "max_length": "maxLength"}
_KEYWORDS: Final[Mapping[str, Mapping[str, str]]] = {
    "integer": _NUMBER,
    "number": _NUMBER,
    "string": _TEXT,
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
_EXCLUSIVE: Final = {"gt": "exclusiveMinimum", "lt": "exclusiveMaximum"}
_CONSTRAINTS: Final = ("ge", "gt", "le", "lt", "multiple_of", "pattern", "min_length", "max_length")

# The shape of a value comes from its type; beyond that, a structural schema knows these.
EXTRA_KEYWORDS: Final = frozenset(
    {"title", "description", "example", "externalDocs", "format", "enum", "allOf", "anyOf", "oneOf", "not"}
    | {"default", "nullable"}
    | {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"}
    | {"minItems", "maxItems", "minProperties", "maxProperties"}
    | {"additionalProperties", "x-kubernetes-embedded-resource", "x-kubernetes-map-type"}
    | {"x-kubernetes-preserve-unknown-fields", "x-kubernetes-validations"}
)


def constrain(schema: dict[str, JSONValue], meta: Meta, limited_as: str, where: object) -> None:
    """Add the constraints of a `Meta` to the schema of a field; an error for those a structural schema cannot express.

    `limited_as` is the JSON type whose limits apply, empty when none do.
    """
    for name in _CONSTRAINTS:
        limit: JSONValue = getattr(meta, name)
        if limit is not None:
            _limit(schema, name, limit, _KEYWORDS.get(limited_as, {}), where)
    if meta.title is not None:
        schema["title"] = meta.title
    if meta.description is not None:
        schema["description"] = meta.description
    if meta.examples:
        schema["example"] = to_json(meta.examples[0])
    extra = meta.extra_json_schema or {}
    if "additionalProperties" in extra:
        schema.pop("x-kubernetes-preserve-unknown-fields", None)  # which a map of anything has in its place
    add_keywords(schema, extra, EXTRA_KEYWORDS, where)


def refuse_limits(markers: Iterable[object], where: object) -> None:
    """Raise `ManifestError` for limits of a union: msgspec decodes no such type, since a limit is of one member."""
    for marker in markers:
        limit = next(
            (name for name in _CONSTRAINTS if isinstance(marker, Meta) and getattr(marker, name) is not None), ""
        )
        if limit:
            raise ManifestError(
                f"{where}: Meta({limit}=...) limits one type, and not a union: write Annotated[int, Meta(...)] | None, "
                "or int | Annotated[str, Meta(...)]"
            )


def add_keywords(
    schema: dict[str, JSONValue], extra: Mapping[str, object], known: Collection[str], where: object
) -> None:
    """Add what an `extra_json_schema` says to a schema; an error for keywords other than the `known` ones."""
    for keyword, value in extra.items():
        if keyword == "uniqueItems":
            raise ManifestError(
                f"{where}: the server refuses uniqueItems, which it would have to check in quadratic time: "
                "use Annotated[list[...], ListSet()]"
            )
        if keyword not in known:
            raise ManifestError(
                f'{where}: extra_json_schema has "{keyword}", which the schema of a custom resource cannot have '
                f"(it can have {', '.join(sorted(known))})"
            )
        schema[keyword] = to_json(value)


def _limit(
    schema: dict[str, JSONValue], name: str, limit: JSONValue, keywords: Mapping[str, str], where: object
) -> None:
    if name not in keywords:
        fitting = f"there are {', '.join(keywords)} for it" if keywords else "it cannot be limited"
        raise ManifestError(f"{where}: Meta({name}={limit!r}) does not fit the type of the field: {fitting}")
    if isinstance(limit, str):
        construct = incompatibility(limit)
        if construct is not None:
            raise ManifestError(
                f"{where}: the pattern {limit!r} uses {construct}, which the API server does not understand: "
                "write it without, or check that part in the reconciler"
            )
    if name == "multiple_of" and isinstance(limit, float) and not limit.is_integer():
        raise ManifestError(
            f"{where}: Meta(multiple_of={limit!r}): the API server refuses whole numbers where a factor is none: count "
            'in smaller units, use Quantity, or Meta(extra_json_schema={"multipleOf": ...}) to have it so'
        )
    schema[keywords[name]] = limit
    if name in _EXCLUSIVE:
        schema[_EXCLUSIVE[name]] = True
