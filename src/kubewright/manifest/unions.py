"""Unions of models, `FileSource | UrlSource`, as one structure with the fields of all members.

A structural schema has one type for each field, and alternatives cannot declare fields of their own. So the fields are
declared together, the tag says which member is meant, and rules in CEL say which fields go with which tag: exactly what
decoding expects of that member. Rules rather than `oneOf`, because their messages name the field and the tag.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import get_origin

from kubewright.api.markers import JSONValue, Rule
from kubewright.api.model import BuiltIn, Model
from kubewright.api.resources import Object
from kubewright.manifest.errors import ManifestError
from kubewright.manifest.keywords import RULES, Schema, fields, required, rules
from kubewright.manifest.rules import add_rules, escaped, is_visible


def tagged(members: Sequence[object], where: object) -> tuple[str, dict[str, object]] | None:
    """The field that distinguishes the members of a union, and each of them by its tag.

    None when they are not all structures that can have a tag; those of Kubernetes cannot.
    """
    classes = [cls for member in members if (cls := _taggable(get_origin(member) or member)) is not None]
    if len(classes) < len(members):
        return None
    names = " and ".join(cls.__name__ for cls in classes)
    by_tag: dict[str, object] = {}
    for cls, member in zip(classes, members, strict=True):
        tag = cls.__struct_config__.tag
        if not isinstance(tag, str):
            raise ManifestError(
                f'{where}: {names} need tags that distinguish them: write class {cls.__name__}(Model, tag="...") for '
                'each; or one Model with an optional field for each, rules=[ExactlyOneOf("file", "url")]'
            )
        if tag in by_tag:
            raise ManifestError(f'{where}: more than one of {names} has the tag "{tag}": give them different ones')
        by_tag[tag] = member
    tag_fields = sorted({str(cls.__struct_config__.tag_field) for cls in classes})
    if len(tag_fields) > 1:
        raise ManifestError(
            f"{where}: {names} have tags in different fields, {' and '.join(tag_fields)}: give them one tag_field="
        )
    return tag_fields[0], by_tag


def _taggable(cls: object) -> type[Model] | None:
    if isinstance(cls, type) and issubclass(cls, Model) and not issubclass(cls, Object | BuiltIn):
        return cls
    return None


def merged_members(members: Mapping[str, Schema], tag_field: str, where: object) -> Schema:
    """The schema of a union, given that of each member by its tag."""
    tags: Schema = {"type": "string", "enum": [*members]}
    described = [f"{tag}: {schema['description']}" for tag, schema in members.items() if "description" in schema]
    if described:
        tags["description"] = "\n".join(described)
    properties: dict[str, JSONValue] = {tag_field: tags}
    needed: list[JSONValue] = [tag_field]
    presence: list[Rule] = []
    for name in dict.fromkeys(name for schema in members.values() for name in fields(schema) if name != tag_field):
        having = {tag: fields(schema)[name] for tag, schema in members.items() if name in fields(schema)}
        needing = [tag for tag in having if name in required(members[tag])]
        everywhere = len(having) == len(members)
        properties[name] = _shared(name, having, everywhere=everywhere, where=where)
        if len(needing) == len(members):
            needed.append(name)
        elif found := _presence(name, [*having], needing, tag_field, everywhere=everywhere):
            _check_visibility(name, having, needing, where)
            presence += found
    schema: Schema = {"type": "object", "properties": properties, "required": sorted(needed, key=str)}
    add_rules(schema, presence, str(where))
    own = [_guarded(rule, tag_field, tag) for tag, member in members.items() for rule in rules(member)]
    if own:
        schema[RULES] = [*rules(schema), *own]
    return schema


def tag_schema(tag: str) -> Schema:
    """The field that a tagged class is sent with, where nothing but this class is possible: it can be left out."""
    return {"type": "string", "enum": [tag], "default": tag}


def field_path(name: str) -> str:
    """The path of a field, as the rules of a union have it."""
    return f".{name}" if name.isidentifier() else f"['{name}']"


def _shared(name: str, alternatives: Mapping[str, Schema], *, everywhere: bool, where: object) -> Schema:
    """The schema of a field that is the same in all members that have it.

    Its default is kept where every member has it: in all other cases the server would fill it in beside the wrong tag.
    """
    (first_tag, first), *others = alternatives.items()
    for tag, other in others:
        if _compared(first) != _compared(other):
            raise ManifestError(
                f'{where}: the field "{name}" of {first_tag} is not that of {tag}, but a structural schema has one '
                "type for both: give them the same type, or different names"
            )
    defaults = [field.get("default") for field in alternatives.values()]
    descriptions = dict.fromkeys(str(field["description"]) for field in alternatives.values() if "description" in field)
    shared = _compared(first)
    if everywhere and defaults[0] is not None and all(default == defaults[0] for default in defaults):
        shared["default"] = defaults[0]
    if descriptions:
        shared["description"] = "\n".join(descriptions)
    return shared


def _compared(field: Schema) -> Schema:
    return {keyword: value for keyword, value in field.items() if keyword not in ("default", "description")}


def _presence(name: str, having: list[str], needing: list[str], tag_field: str, *, everywhere: bool) -> list[Rule]:
    """The rules for a field that some of the members have, or need."""
    has, path = f"has(self.{escaped(name)})", field_path(name)
    if needing == having and not everywhere:
        message = f"must be set when {tag_field} is {' or '.join(having)}, and only then"
        return [Rule(f"{has} == ({_is(tag_field, having)})", message=message, field_path=path)]
    found = []
    if not everywhere:
        message = f"can only be set when {tag_field} is {' or '.join(having)}"
        found.append(Rule(f"!{has} || {_is(tag_field, having)}", message=message, field_path=path))
    if needing:
        message = f"must be set when {tag_field} is {' or '.join(needing)}"
        found.append(Rule(f"{has} || {_is_not(tag_field, needing)}", message=message, field_path=path))
    return found


def _check_visibility(name: str, having: Mapping[str, Schema], needing: Sequence[str], where: object) -> None:
    """Raise `ManifestError` for a field of some members that rules cannot keep out of the others."""
    if not all(map(is_visible, having.values())):
        raise ManifestError(
            f'{where}: the field "{name}" goes with {" and ".join(needing or having)} only, which takes a rule, and '
            "rules do not see JSONValue: use dict[str, JSONValue], or have it alike in every member"
        )
    if needing and having[needing[0]].get("nullable"):
        raise ManifestError(
            f'{where}: the field "{name}" must be set in {" and ".join(needing)} only, which takes a rule, and rules '
            "do not distinguish null from absent: give it a default, or have it alike in every member"
        )


def _is(tag_field: str, tags: Sequence[str]) -> str:
    field, names = f"self.{escaped(tag_field)}", [f"'{tag}'" for tag in tags]
    return f"{field} == {names[0]}" if len(names) == 1 else f"{field} in [{', '.join(names)}]"


def _is_not(tag_field: str, tags: Sequence[str], of: str = "self") -> str:
    return " && ".join(f"{of}.{escaped(tag_field)} != '{tag}'" for tag in tags)


def _guarded(rule: Schema, tag_field: str, tag: str) -> Schema:
    """A rule of one member, which holds while the union is that member; one about changes, while it stays it."""
    source = str(rule["rule"])
    always, while_it_stays, if_it_was = _guards(tag_field, tag)
    guard = always
    if re.search(r"\boldSelf\b", source):
        guard = if_it_was if rule.get("optionalOldSelf") else while_it_stays
    end = "\n" if "//" in source.rpartition("\n")[2] else ""  # of what may be a comment
    return {**rule, "rule": f"{guard}({source}{end})"}


def unguarded(rule: Schema, tag_field: str, tag: str) -> Schema | None:
    """The rule of the member with that tag that a rule of the union was made from; None when it is no such rule."""
    source = str(rule["rule"])
    for guard in reversed(_guards(tag_field, tag)):  # the longer ones begin as the first does
        if source.startswith(f"{guard}(") and source.endswith(")"):
            return {**rule, "rule": source.removeprefix(f"{guard}(")[:-1].removesuffix("\n")}
    return None


def _guards(tag_field: str, tag: str) -> tuple[str, str, str]:
    now = f"{_is_not(tag_field, [tag])} || "
    before = _is_not(tag_field, [tag], of="oldSelf")
    perhaps = _is_not(tag_field, [tag], of="oldSelf.value()")
    return now, f"{now}{before} || ", f"{now}(oldSelf.hasValue() && {perhaps}) || "
