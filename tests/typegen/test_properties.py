"""Any structural schema becomes types whose own schema means the same, and source that is formatted."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubewright.api.markers import JSONValue
from kubewright.api.resources import Object
from kubewright.manifest.schema import Schema, schema_of
from kubewright.typegen import definition, generate
from kubewright.typegen.canonical import canonical_kind

NAMES = st.sampled_from(
    ["name", "spec", "template", "from", "dnsNames", "clusterIP", "x-y", "list", "field", "a", "aB", "items", "type"]
)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12)


def with_keywords(schema: Schema, **keywords: st.SearchStrategy[JSONValue]) -> st.SearchStrategy[Schema]:
    """The schema with any of the keywords."""
    return st.fixed_dictionaries({}, optional=keywords).map(lambda chosen: {**schema, **chosen})


SCALARS: st.SearchStrategy[Schema] = st.one_of(
    with_keywords(
        {"type": "string"},
        minLength=st.integers(1, 3),
        maxLength=st.integers(12, 20),
        pattern=st.sampled_from(["^[a-z]+$", r"^\d+\.\d+$", "^[[:alpha:]]+$", "it's", 'a"b', r"\pL"]),
        description=TEXTS,
        nullable=st.just(True),
    ),
    with_keywords({"type": "string"}, enum=st.lists(TEXTS, min_size=1, max_size=8, unique=True), description=TEXTS),
    with_keywords({"type": "string"}, format=st.sampled_from(["date-time", "byte", "uri", "duration"])),
    with_keywords(
        {"type": "integer"},
        minimum=st.integers(-(2**70), 0),
        maximum=st.integers(1, 2**70),
        exclusiveMaximum=st.booleans(),
        format=st.sampled_from(["int32", "int64"]),
        default=st.just(0),
        nullable=st.just(True),
    ),
    with_keywords({"type": "number"}, minimum=st.integers(0, 3), format=st.just("double"), multipleOf=st.just(0.5)),
    with_keywords({"type": "boolean"}, default=st.booleans(), nullable=st.just(True)),
    with_keywords({"x-kubernetes-int-or-string": True}, pattern=st.just("^[0-9]+%?$"), default=st.just("5%")),
    with_keywords({"x-kubernetes-preserve-unknown-fields": True}, default=st.just({"a": [1, None]})),
    with_keywords({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, default=st.just({"a": 1})),
)


def containers(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    return st.one_of(
        st.builds(lambda item: {"type": "array", "items": item}, inner).flatmap(
            lambda schema: with_keywords(
                schema,
                minItems=st.integers(1, 2),
                maxItems=st.integers(3, 9),
                nullable=st.just(True),
                description=TEXTS,
            )
        ),
        st.builds(lambda value: {"type": "object", "additionalProperties": value}, inner),
        objects(inner),
    )


def objects(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    def with_required(properties: dict[str, Schema]) -> st.SearchStrategy[Schema]:
        names = st.lists(st.sampled_from(sorted(properties)), unique=True) if properties else st.just([])
        keywords = with_keywords(
            {"type": "object", "properties": {**properties}},
            description=TEXTS,
            nullable=st.just(True),
        )
        return st.builds(lambda schema, required: {**schema, "required": required}, keywords, names)

    return st.dictionaries(NAMES, inner, max_size=5).flatmap(with_required)


SCHEMAS = st.recursive(SCALARS, containers, max_leaves=12)


def generated(schema: Schema, width: int) -> str:
    version: JSONValue = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
    }
    names: JSONValue = {"kind": "Thing", "plural": "things"}
    spec: JSONValue = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    document: JSONValue = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": spec,
    }
    return generate([definition(document, "it")], line_length=width)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(SCHEMAS)
def test_the_schema_of_the_types_means_what_the_original_does(schema: Schema) -> None:
    module = ModuleType("generated_property")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        exec(compile(generated(schema, 88), module.__name__, "exec"), module.__dict__)
        kind = module.__dict__["Thing"]
        assert issubclass(kind, Object)
        rendered = schema_of(kind)

    assert canonical_kind(rendered) == canonical_kind({"type": "object", "properties": {"spec": schema}})


@settings(max_examples=4, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(SCHEMAS, min_size=40, max_size=40), st.integers(70, 120))
def test_the_source_is_formatted(schemas: list[Schema], width: int) -> None:
    with TemporaryDirectory() as folder:
        for number, schema in enumerate(schemas):
            (Path(folder) / f"module{number}.py").write_text(generated(schema, width))
        ruff = ["ruff", "format", "--isolated", "--no-cache", "--line-length", str(width), "--diff", folder]
        assert subprocess.run([sys.executable, "-m", *ruff], capture_output=True, text=True).stdout == ""
