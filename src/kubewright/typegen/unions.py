"""Unions of models in a schema, recognized by the rules that `kubewright.manifest.unions` renders for them.

What is recognized is rendered again and compared: a definition of others that only looks alike has one class with
all the fields, as every other structure has.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kubewright.api.markers import JSONValue
from kubewright.api.model import is_tag, is_tag_field
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.keywords import RULES, Schema, described, fields, required, rules
from kubewright.manifest.unions import field_path, merged_members, tag_schema, unguarded
from kubewright.typegen.canonical import canonical

_TAG = r"'([^']*)'"


class Members(NamedTuple):
    """The members of a union by their tags, and the rules for all of them."""

    tag_field: str
    schemas: dict[str, Schema]
    rules: list[Schema]


def members_of(schema: Schema) -> Members | None:
    """The members of a union; None when the schema is something else."""
    for name in sorted(required(schema)) if schema.get("type") == "object" and rules(schema) else ():
        tags = fields(schema).get(name, {}).get("enum")
        if isinstance(tags, list) and len(tags) > 1 and is_tag_field(name) and all(map(is_tag, tags)):
            members = _members(schema, name, [str(tag) for tag in tags])
            if _is_rendered(schema, members):
                return members
    return None


def _is_rendered(schema: Schema, members: Members) -> bool:
    """Whether rendering these members gives what the schema says of its fields."""
    try:
        merged = merged_members(members.schemas, members.tag_field, "")
    except ManifestError:
        return False
    if not rules(merged):
        return False  # nothing depends on the value of that field
    merged[RULES] = [*rules(merged), *members.rules]
    return canonical({keyword: schema[keyword] for keyword in merged if keyword in schema}) == canonical(merged)


def _members(schema: Schema, tag_field: str, tags: list[str]) -> Members:
    own = {name: field for name, field in fields(schema).items() if name != tag_field}
    having = dict.fromkeys(own, tags)
    needing = {name: tags if name in required(schema) else [] for name in own}
    paths = {field_path(name): name for name in own}
    of_members: dict[str, list[Schema]] = {tag: [] for tag in tags}
    of_all: list[Schema] = []
    for rule in rules(schema):
        source, name = str(rule["rule"]), paths.get(str(rule.get("fieldPath")))
        named = re.findall(_TAG, source)
        of_one = [(tag, found) for tag in tags if (found := unguarded(rule, tag_field, tag)) is not None]
        if name is not None and source.startswith("!has("):
            having[name] = named
        elif name is not None and source.startswith("has("):
            needing[name] = named
            having[name] = named if ") == (" in source else having[name]
        elif of_one:
            of_members[of_one[0][0]].append(of_one[0][1])
        else:
            of_all.append(rule)
    schemas: dict[str, Schema] = {}
    descriptions = _descriptions(described(fields(schema)[tag_field]), tags)
    for tag in tags:
        chosen: dict[str, JSONValue] = {name: field for name, field in own.items() if tag in having[name]}
        needed: list[JSONValue] = [name for name in chosen if tag in needing[name] and "default" not in own[name]]
        # Members that are described differently are different classes: a docstring is the only place for it.
        of_tag: Schema = {**tag_schema(tag), "description": descriptions.get(tag, "")}
        schemas[tag] = {"type": "object", "properties": {tag_field: of_tag, **chosen}, "required": needed}
        if of_members[tag]:
            schemas[tag][RULES] = [*of_members[tag]]
        if descriptions.get(tag):
            schemas[tag]["description"] = descriptions[tag]
    return Members(tag_field, schemas, of_all)


def _descriptions(text: str, tags: list[str]) -> dict[str, str]:
    """What the description of the tag says of each member."""
    found: dict[str, str] = {}
    current = ""
    for line in text.splitlines():
        tag, colon, rest = line.partition(": ")
        if colon and tag in tags:
            current, found[tag] = tag, rest
        elif current:
            found[current] += f"\n{line}"
    return {tag: description.strip() for tag, description in found.items()}
