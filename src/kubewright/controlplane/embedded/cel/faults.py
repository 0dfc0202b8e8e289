"""Field errors about rules, where Go prints something else than the JSON of a value."""

from __future__ import annotations

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.status import FieldError, FieldErrorType

_WORDS: dict[FieldErrorType, str] = {"FieldValueInvalid": "Invalid value", "FieldValueDuplicate": "Duplicate value"}


class WithoutValue(FieldError):
    """A field error that does not show the value: those of objects and lists are too long to be helpful."""

    __slots__ = ()

    @property
    def body(self) -> str:
        """Everything after the field."""
        return f"{_WORDS[self.type]}: {self.detail}" if self.detail else _WORDS[self.type]


class AboutRule(FieldError):
    """A field error whose value is a whole rule, as Go prints one: all fields, and safe to put into HTML."""

    __slots__ = ()

    @property
    def body(self) -> str:
        """Everything after the field."""
        shown = msgspec.json.encode(self.value).decode()
        for sign, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
            shown = shown.replace(sign, code)
        return f"Invalid value: {shown}: {self.detail}"


def about_rule(path: str, rule: JSONObject, detail: str) -> FieldError:
    """What is wrong with a rule of a definition."""
    value: JSONObject = {
        "Rule": rule.get("rule") or "",
        "Message": rule.get("message") or "",
        "MessageExpression": rule.get("messageExpression") or "",
        "Reason": rule.get("reason"),
        "FieldPath": rule.get("fieldPath") or "",
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
    return AboutRule("FieldValueInvalid", path, value, detail)
