"""Quantities, versions, formats and regular expressions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

HOLD = [
    "quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('100m').isLessThan(quantity('1'))",
    "quantity('1k') == quantity('1000') && quantity('1.5').compareTo(quantity('1500m')) == 0",
    "quantity('1').add(quantity('500m')) == quantity('1500m') && quantity('2').sub(1) == quantity('1')",
    "isQuantity('1Mi') && !isQuantity('1x') && quantity('5').asInteger() == 5",
    "quantity('0.5').asApproximateFloat() == 0.5",
    "quantity('5').isInteger() && !quantity('500m').isInteger() && sign(quantity('-1')) == -1",
    "semver('1.2.3').isLessThan(semver('1.10.0')) && semver('1.2.3-rc.1').isLessThan(semver('1.2.3'))",
    "semver('1.2.3').major() == 1 && semver('1.2.3').minor() == 2 && semver('1.2.3').patch() == 3",
    "semver('1.2.3+a') == semver('1.2.3+b') && semver('1.2.3').compareTo(semver('1.2.3')) == 0",
    "isSemver('1.2.3') && !isSemver('v1.2') && isSemver('v1.2', true) && semver('v1.02', true) == semver('1.2.0')",
    "!format.dns1123Label().validate('my-name').hasValue() && format.dns1123Label().validate('A').hasValue()",
    "format.dns1123Label().validate('a.b').value() == ['must not contain dots']",
    "format.dns1123Subdomain().validate('a.b') == optional.none()",
    "format.labelValue().validate('') == optional.none()",
    "!format.dns1123LabelPrefix().validate('my-').hasValue() && format.dns1123Label().validate('my-').hasValue()",
    "format.qualifiedName().validate('/a').value() == ['prefix part must be non-empty']",
    "format.named('uuid').value().validate('x').value() == ['does not match the UUID format']",
    "!format.named('unknown').hasValue() && format.date().validate('2021-02-29').value() == ['invalid date']",
    "format.datetime().validate('2021-01-01T00:00:00Z') == optional.none()",
    "format.byte().validate('YWJj') == optional.none()",
    "'abc 123'.find('[0-9]+') == '123' && 'abc'.find('[0-9]+') == '' && 'a1b2'.findAll('[0-9]') == ['1', '2']",
    "'aaa'.findAll('a', 2) == ['a', 'a'] && 'x'.findAll('x*') == ['x']",
    "'a1'.matches('[a-z]') && !'a\\n'.matches('a$')",
    "'ABC'.matches('(?i)b') && matches('foo', '^fo+$') && 'a-b'.matches('^[[:alpha:]-]+$') && !'é'.matches('^\\\\w$')",
]
FAIL = [
    (
        "quantity('1x') == quantity('1')",
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    ("quantity('1ki') == quantity('1')", "unable to parse quantity's suffix"),
    ("quantity('0.5').asInteger() == 1", "cannot convert value to integer"),
    ("semver('1') == semver('1.0.0')", "No Major.Minor.Patch elements found"),
    ("semver('01.0.0') == semver('1.0.0')", 'Major number must not contain leading zeroes "01"'),
    ("'a'.matches(self.text + '(')", "error parsing regexp: missing closing ): `abc(`"),
]


@pytest.mark.parametrize("rule", HOLD)
def test_rule_holds(rule: str, outcome: Callable[[str], str]) -> None:
    assert outcome(rule) == ""


@pytest.mark.parametrize(("rule", "complaint"), FAIL)
def test_a_parse_error_is_reported(rule: str, complaint: str, outcome: Callable[[str], str]) -> None:
    assert outcome(rule) == f"{complaint} evaluating rule: {rule}"
