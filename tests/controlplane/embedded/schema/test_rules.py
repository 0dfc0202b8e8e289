from __future__ import annotations

import sys

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.schema.rules import check_rules, compiled, has_rules

RULES: JSONObject = {"x-kubernetes-validations": [{"rule": "self.a == 'x'"}]}


def test_rules_are_found_anywhere_in_a_schema() -> None:
    assert has_rules({"properties": {"a": {"items": {"additionalProperties": RULES}}}})
    assert not has_rules({"properties": {"a": {"x-kubernetes-validations": []}}})


def test_a_schema_without_rules_does_not_need_the_expression_language(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kubewright.controlplane.embedded.cel", None)

    assert compiled({"type": "object"}) is None
    assert check_rules({"type": "object"}, "s") == []
    with pytest.raises(ImportError):
        compiled(RULES)


def test_rules_are_checked_and_compiled() -> None:
    schema: JSONObject = {"type": "object", "properties": {"a": {"type": "string"}}, **RULES}
    wrong: JSONObject = {"type": "object", **RULES}

    rules = compiled(schema)

    assert check_rules(schema, "s") == []
    assert [error.field for error in check_rules(wrong, "s")] == ["s.x-kubernetes-validations[0].rule"]
    assert rules is not None
    assert rules.validate({"a": "x"}) == []
    assert [error.detail for error in rules.validate({"a": "y"})] == ["failed rule: self.a == 'x'"]
