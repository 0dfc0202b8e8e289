from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.schema.patterns import InvalidPattern, go_pattern


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("^a$", "a", "a\n"),
        ("(?m)^a$", "b\na\nc", "b"),
        ("a.b", "axb", "a\nb"),
        ("(?s)a.b", "a\nb", "ab"),
        (r"^\d+$", "12", "٣"),
        (r"^\w$", "_", "é"),
        (r"^\s$", "\t", "\v"),
        (r"^[\S]$", "\v", " "),
        (r"\bfoo\b", "a foo b", "afoo"),
        (r"^a\z", "a", "a\n"),
        (r"^\p{L}+$", "éx", "1"),
        (r"^\pN$", "٣", "x"),
        (r"^\P{Lu}$", "a", "A"),
        (r"^[\p{Greek}]$", "λ", "a"),
        ("^[[:alpha:]_]+$", "a_b", "a1"),
        ("^[[:^digit:]]$", "a", "1"),
        ("^[^]a]$", "b", "]"),
        ("^[]a-]+$", "]a-", "b"),
        ("^[[&|~]$", "[", "a"),
        (r"^\Qa.b\E$", "a.b", "axb"),
        (r"^\x{41}\x42\103$", "ABC", "abc"),
        ("^a{,2}$", "a{,2}", "aa"),
        ("^a{2,3}?$", "aaa", "a"),
        ("^x(?i)b|c$", "xB", "B"),
        ("^(x(?i)b|c)d$", "Cd", "cD"),
        ("(?U)^a+$", "aa", "b"),
        ("^(?P<n>a)(?<n>b)$", "ab", "a"),
        ("^[(?P<ä>)]$", "ä", "b"),
        ("^(?i:a)b$", "Ab", "AB"),
        (r"^[\a\f\n\r\t\v]$", "\a", "a"),
        ("^[a\\-z]$", "-", "b"),
    ],
)
def test_a_pattern_means_what_it_means_in_go(pattern: str, matching: str, other: str) -> None:
    compiled = go_pattern(pattern)

    assert compiled.matches(matching)
    assert not compiled.matches(other)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a*+", "invalid nested repetition operator: `*+`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?z)", "invalid or unsupported Perl syntax: `(?z`"),
        ("(?<!a)b", "invalid named capture: `(?<!a)b`"),
        ("a(?P<ä>a)", "invalid named capture: `(?P<ä>`"),
        ("(?<n>[)](?<ä>a))", "invalid named capture: `(?<ä>`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("[a-\\d]", "invalid escape sequence: `\\d`"),
        ("a\\C", "invalid escape sequence: `\\C`"),
        ("a{1001}?", "invalid repeat count: `{1001}`"),
        ("(?<n>a", "missing closing ): `(?<n>a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("\\p{Foo}", "invalid character class range: `\\p{Foo}`"),
        ("[a", "missing closing ]: `[a`"),
        ("\\y", "invalid escape sequence: `\\y`"),
        ("\\1", "invalid escape sequence: `\\1`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
    ],
)
def test_a_pattern_that_go_does_not_compile_is_refused_with_its_message(pattern: str, message: str) -> None:
    with pytest.raises(InvalidPattern) as caught:
        go_pattern(pattern)

    assert str(caught.value) == f"error parsing regexp: {message}"


def test_a_pattern_nested_beyond_reason_is_refused_and_not_fatal() -> None:
    with pytest.raises(InvalidPattern, match="expression nests too deeply"):
        go_pattern("(" * 20_000 + ")" * 20_000)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(.*a){20}$", "^([a-z]+)*[A-Z]$"])
def test_no_pattern_takes_longer_than_its_text_is_long(pattern: str) -> None:
    """With an engine that tries one way after the other, each of these would practically never end."""
    assert not go_pattern(pattern).matches("a" * 50_000 + "!")


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a*", "baac", ["", "aa", ""]),
        ("", "éx", ["", "", ""]),
        ("é|x", "éxé", ["é", "x", "é"]),
        ("b", "a", []),
    ],
)
def test_all_that_matches_is_found_as_in_go(pattern: str, text: str, found: list[str]) -> None:
    assert go_pattern(pattern).find_all(text) == found
    assert go_pattern(pattern).find_all(text, 1) == found[:1]
    assert go_pattern(pattern).find_all(text, 0) == []
