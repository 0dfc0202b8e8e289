"""Any structural schema becomes types whose own schema means the same, and source that mypy and ruff accept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.typegen.conftest import imported, kinds

from kubewright.api.markers import JSONValue
from kubewright.manifest.crd import crd_of
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.keywords import RULES, Schema, fields, required
from kubewright.manifest.keywords import rules as known_rules
from kubewright.manifest.rules import is_visible
from kubewright.manifest.unions import merged_members
from kubewright.typegen import definition, generate
from kubewright.typegen.canonical import canonical_kind

Schemas = st.SearchStrategy[Schema]

NAMES = st.sampled_from(
    [
        *(
            "name",
            "spec",
            "template",
            "from",
            "dnsNames",
            "clusterIP",
            "x-y",
            "list",
            "field",
            "a",
            "aB",
            "items",
            "type",
        ),
        *("_x", "9lives", "metadata", "status", "a_b", "a-b"),
    ]
)
# Without what has no width of its own, which ruff counts in its own way.
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["C", "M", "Zl", "Zp"]), min_size=1, max_size=12)
PROSE: dict[str, st.SearchStrategy[JSONValue]] = {
    "description": st.lists(st.sampled_from([*"ab \n\\\"'-\x07\u2028é", '"""']), max_size=40).map("".join),
    "title": TEXTS,
    "example": st.sampled_from(["x", 1, {"a": None}, []]),
    "externalDocs": st.just({"url": "https://example.com"}),
}


@st.composite
def rules(draw: st.DrawFn) -> JSONValue:
    known: list[JSONValue] = [
        {"rule": "self == oldSelf", "message": "field is immutable"},
        {"rule": "self == oldSelf", "message": "it stays"},
        {"rule": 'true || "\\""', "messageExpression": '"a" + "b"', "reason": "FieldValueForbidden"},
        {"rule": "oldSelf.orValue(true)", "optionalOldSelf": True},
    ]
    return draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique_by=str))


def with_keywords(schema: Schema, **keywords: st.SearchStrategy[JSONValue]) -> Schemas:
    """The schema with any of the keywords, and any prose."""
    return st.fixed_dictionaries({}, optional={**keywords, **PROSE}).map(lambda chosen: {**schema, **chosen})


NULLABLE = st.just(True)
ANYTHING: list[JSONValue] = [None, {"a": [1, None]}]
NUMBERS: list[JSONValue] = [0, 1, 2.5, 1.5e300, 1e-9]
SCALARS: Schemas = st.one_of(
    with_keywords(
        {"type": "string"},
        minLength=st.integers(0, 3),
        maxLength=st.integers(12, 20),
        pattern=st.sampled_from(["^[a-z]+$", r"^\d+\.\d+$", "^[[:alpha:]]+$", "it's", 'a"b', r"\pL"]),
        nullable=NULLABLE,
    ),
    with_keywords({"type": "string"}, default=TEXTS | st.none(), nullable=NULLABLE),
    with_keywords(
        {"type": "string"},
        enum=st.lists(TEXTS, min_size=1, max_size=8, unique=True),
        nullable=NULLABLE,
        maxLength=st.just(40),
    ),
    with_keywords(
        {"type": "string", "nullable": True}, allOf=st.just([{"enum": ["a", 'b"', ""]}]), default=st.just("a")
    ),
    with_keywords({"type": "string"}, format=st.sampled_from(["byte", "uri", "duration", "int-or-string"])),
    with_keywords(
        {"type": "string", "format": "date-time"},
        default=st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.120+02:00"]),
        maxLength=st.just(30),
    ),
    with_keywords(
        {"type": "integer"},
        minimum=st.integers(-(2**70), 0) | st.just(-0.5),
        maximum=st.integers(1, 2**70),
        exclusiveMaximum=st.booleans(),
        format=st.sampled_from(["int32", "int64"]),
        default=st.just(0),
        nullable=NULLABLE,
    ),
    with_keywords({"type": "integer"}, enum=st.just([1, 2]), minimum=st.just(0)),
    with_keywords(
        {"type": "number"},
        minimum=st.integers(0, 3) | st.just(-1.5e300),
        maximum=st.sampled_from([1.5e300, 2**80, 7.25]),
        exclusiveMinimum=st.booleans(),
        format=st.just("double"),
        multipleOf=st.sampled_from([0.5, 0.1, 1e-7]),
        nullable=NULLABLE,
    ),
    with_keywords(
        {"type": "number"},
        default=st.sampled_from([0, 1, 2.5, 1.5e300, 1e-9]),
        enum=st.just([0, 1, 2.5, 1.5e300, 1e-9]),
    ),
    with_keywords({"type": "boolean"}, default=st.booleans(), nullable=NULLABLE, enum=st.just([True, False])),
    with_keywords(
        {"x-kubernetes-int-or-string": True},
        pattern=st.just("^[0-9]+%?$"),
        default=st.sampled_from(["5%", 5]),
        anyOf=st.sampled_from(
            [[{"type": "integer"}, {"type": "string"}], [{"type": "integer"}, {"type": "string"}, {"pattern": "a"}]]
        ),
    ),
    with_keywords({"x-kubernetes-preserve-unknown-fields": True}, default=st.sampled_from(ANYTHING), nullable=NULLABLE),
    with_keywords(
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        default=st.just({"a": 1, "b": None}),
        nullable=NULLABLE,
        **{"x-kubernetes-embedded-resource": st.just(True)},
    ),
    with_keywords(
        {"type": "object", "additionalProperties": True},
        default=st.just({"a": 1, "b": None}),
        nullable=NULLABLE,
        maxProperties=st.just(5),
        **{"x-kubernetes-preserve-unknown-fields": st.just(True)},
    ),
)


def containers(inner: Schemas) -> Schemas:
    return st.one_of(
        inner.flatmap(
            lambda item: with_keywords(
                {"type": "array", "items": item},
                minItems=st.integers(0, 2),
                maxItems=st.integers(3, 9),
                nullable=NULLABLE,
                default=st.just([]),
                **{"x-kubernetes-list-type": st.just("atomic"), "x-kubernetes-validations": rules()},
            ).map(fitting)
        ),
        inner.flatmap(
            lambda value: with_keywords(
                {"type": "object", "additionalProperties": value},
                minProperties=st.integers(0, 2),
                nullable=NULLABLE,
                default=st.just({}),
                **{"x-kubernetes-map-type": st.sampled_from(["atomic", "granular"])},
            ).map(fitting)
        ),
        objects(inner),
        unions(inner),
    )


def unions(inner: Schemas) -> Schemas:
    """Unions of models, as far as they can be rendered, and what only looks like one."""

    def merged(members: list[Schema], prose: Schema, more: list[Schema], tag_field: str) -> Schema:
        tagged: dict[str, Schema] = {}
        for tag, member in zip(("File", "URL", "it/s-1"), members, strict=False):
            properties = {name: field for name, field in fields(member).items() if name != tag_field}
            kept: Schema = {keyword: member[keyword] for keyword in (RULES, "description") if keyword in member}
            needed: list[JSONValue] = [*sorted(required(member) & properties.keys())]
            tagged[tag] = {**kept, "type": "object", "properties": {**properties}, "required": needed}
        try:
            schema = merged_members(tagged, tag_field, "it")
        except ManifestError:
            return {"type": "object", "properties": {"a": {"type": "string"}}}
        known = [rule for rule in more if "fieldPath" not in rule or "a" in fields(schema)]
        rendered: JSONValue = [*known_rules(schema), *known]
        return {**schema, **prose, RULES: rendered}

    member = st.one_of(objects(SCALARS), objects(inner))
    prose = with_keywords({}, nullable=NULLABLE, **{"x-kubernetes-map-type": st.just("atomic")})
    more: list[Schema] = [
        {"rule": "true"},
        {"rule": "has(self.a)", "fieldPath": ".a", "message": "mine"},
        {"rule": "self.type != 'File' || (true)"},
        {"rule": "self == oldSelf", "message": "field is immutable"},
    ]
    rest = st.lists(st.sampled_from(more), max_size=1)
    return st.builds(merged, st.lists(member, min_size=2, max_size=3), prose, rest, st.sampled_from(["type", "b"]))


def objects(inner: Schemas, *, of_kind: bool = False) -> Schemas:
    structure: dict[str, st.SearchStrategy[JSONValue]] = {
        "minProperties": st.integers(0, 1),
        "oneOf": st.just([{"required": ["a"]}, {"not": {"required": ["b"]}}]),
        "x-kubernetes-preserve-unknown-fields": st.just(True),
        "x-kubernetes-validations": rules(),
    }
    if not of_kind:
        structure |= {
            "additionalProperties": st.booleans(),
            "nullable": NULLABLE,
            "default": st.sampled_from([{}, {"unknown": None}, {"name": None}]),
            "x-kubernetes-map-type": st.just("atomic"),
        }

    def with_required(properties: dict[str, Schema]) -> Schemas:
        names = st.lists(st.sampled_from(sorted(properties)), unique=True) if properties else st.just([])
        keywords = with_keywords({"type": "object", "properties": {**properties}}, **structure)
        return st.builds(lambda schema, required: {**schema, "required": required}, keywords, names).map(fitting)

    return st.dictionaries(NAMES, inner, max_size=5).flatmap(with_required)


def fitting(schema: Schema) -> Schema:
    """Without a default that does not fit, and without rules that see nothing, which a server refuses."""
    if not is_visible(schema):
        schema = {keyword: value for keyword, value in schema.items() if keyword != RULES}
    default, properties = schema.get("default"), schema.get("properties")
    fits = default or not (schema.get("minItems") or schema.get("minProperties"))
    if isinstance(default, dict) and isinstance(properties, dict):
        preserves = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        for name in default:
            field = properties.get(name)
            fits = fits and (bool(field.get("nullable")) if isinstance(field, dict) else preserves)
    return schema if fits else {keyword: value for keyword, value in schema.items() if keyword != "default"}


SCHEMAS = st.recursive(SCALARS, containers, max_leaves=8)


def kind(spec: Schema) -> Schema:
    return {"type": "object", "properties": {"spec": spec}}


def with_metadata(schema: Schema) -> Schema:
    properties = schema["properties"]
    assert isinstance(properties, dict)
    restricted: JSONValue = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}}}
    return {**schema, "properties": {**properties, "metadata": restricted}}


KINDS = st.one_of(SCHEMAS.map(kind), objects(SCHEMAS, of_kind=True).map(with_metadata))


def generated(schema: Schema, width: int = 88) -> str:
    version: JSONValue = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names: JSONValue = {"kind": "Thing", "plural": "things"}
    spec: JSONValue = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    document: JSONValue = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": spec,
    }
    return generate([definition(document, "it")], line_length=width)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(KINDS)
def test_the_definition_of_the_types_is_the_original(schema: Schema) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # The server would refuse rules about changes in lists, and so does the renderer: not what this is about.
        patch.setattr("kubewright.manifest.schema.check_correlation", lambda *_: None)
        module = imported(generated(schema), Path(folder))
        del sys.modules[module.__name__]
        patch.setitem(sys.modules, module.__name__, module)
        (thing,) = kinds(module)
        rendered = definition(crd_of(thing), "rendered").spec.versions[0]

    assert canonical_kind(rendered.schema.open_api_v3_schema) == canonical_kind(schema)


@settings(max_examples=1, suppress_health_check=[HealthCheck.too_slow], deadline=None, phases=[Phase.generate])
@given(st.lists(KINDS, min_size=60, max_size=60), st.integers(70, 120))
def test_the_source_is_formatted_and_typed(schemas: list[Schema], width: int) -> None:
    with TemporaryDirectory() as folder:
        for number, schema in enumerate(schemas):
            (Path(folder) / f"module{number}.py").write_text(generated(schema, width), encoding="utf-8")
        ruff = ["ruff", "format", "--isolated", "--no-cache", "--line-length", str(width), "--diff", folder]
        assert subprocess.run([sys.executable, "-m", *ruff], capture_output=True, text=True).stdout == ""
        mypy = ["mypy", "--strict", "--config-file=", "--cache-dir", f"{folder}/cache", folder]
        typed = subprocess.run([sys.executable, "-m", *mypy], capture_output=True, text=True, cwd=folder)
        assert typed.returncode == 0, typed.stdout
