"""Messages for wrong uses of models: each names the class, the field and the fix. Imported only when one is needed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from kubewright.api.meta import ObjectMeta
from kubewright.api.naming import python_name


def construction_error(
    error: TypeError, cls: type, args: tuple[object, ...], values: Mapping[str, object]
) -> TypeError:
    """Explains why `cls(*args, **values)` failed: the arguments that are wrong, or else the error itself."""
    fields: tuple[str, ...] = getattr(cls, "__struct_fields__", ())
    name = cls.__name__
    if args:
        example = f"{fields[0]}=..." if fields else ""
        return TypeError(f"{name} takes keywords only: write {name}({example})")
    unknown = next((value for value in values if value not in fields), None)
    if unknown is not None and "metadata" in fields and unknown in ObjectMeta.__struct_fields__:
        return TypeError(f"{name} has no field {unknown!r}: write {name}(metadata=ObjectMeta({unknown}=...))")
    if unknown is not None:
        return TypeError(f"{name} has no field {unknown!r}{suggestion(unknown, fields)}")
    if str(error).startswith("Missing required argument"):
        field = str(error).rpartition(" ")[2].strip("'\"")
        return TypeError(f"{name} needs the field {field!r}: write {name}({field}=...)")
    return error


def attribute_error(owner: object, attribute: str) -> AttributeError:
    """The error for an attribute that is not a field of `owner`."""
    fields: tuple[str, ...] = getattr(owner, "__struct_fields__", ())
    name = type(owner).__name__
    if attribute in ("get", "items", "keys", "to_dict"):
        hint = ": its fields are attributes (to_json of kubewright.api makes a dict)"
    elif attribute == "as_owner":
        hint = ": give the owner itself, not a part of it"
    elif "metadata" in fields and attribute in ObjectMeta.__struct_fields__:
        hint = f": write .metadata.{attribute}"
    else:
        hint = suggestion(attribute, fields)
    return AttributeError(f"{name} has no field {attribute!r}{hint}", name=attribute, obj=owner)


def suggestion(wrong: str, fields: Iterable[str]) -> str:
    """The end of the message: the closest field, or all of them when none is close and they are few."""
    known = list(fields)
    snake = python_name(wrong)
    if snake != wrong and snake in known:
        return f": Python names are in snake case, write {snake!r}"
    close = difflib.get_close_matches(snake, known, n=1)
    if close:
        return f": did you mean {close[0]!r}?"
    return f" (it has {', '.join(known)})" if 0 < len(known) <= 12 else ""
