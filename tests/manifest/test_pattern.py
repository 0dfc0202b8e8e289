"""Which patterns mean the same to Python and to the server."""

import re

import pytest

from kubewright.manifest.pattern import incompatibility


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        r"a{2}b{2,}c{2,3}d*?e+?f??g{2}?",
        r"\d\w\s\D\W\S\b\B\A\.\-\/\\\n\t\x41\_\ ",
        r"(?:a|b)(?P<name>c)",
        r"(?i)abc",
        r"(?i:abc)(?-s:.)",
        r"[]a-c^\]\-\d]x",
        r"[^]]",
        r"a{x}{",
        r"(?:a{10}(?:b{2,5}|c{3})?){100}d{1000}(?:e{10,}){0}(f{500}x+){2}",
        r"(?:(?:a{100}){0}(?:b{100}){0,0}){100}",
        r"[*+?{(]+",
        r"\012\101[\11]",
        "ümlaut",
        "",
    ],
)
def test_common_syntax_is_left_alone(pattern: str) -> None:
    re.compile(pattern)
    assert incompatibility(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        (r"(?=a)", "look-ahead (?=...)"),
        (r"^(?!kube-)", "negative look-ahead (?!...)"),
        (r"(?<=a)b", "look-behind (?<=...)"),
        (r"(?<!a)b", "negative look-behind (?<!...)"),
        (r"(a)\1", r"a backreference \1"),
        (r"(?P<x>a)(?P=x)", "a backreference (?P=...)"),
        (r"(a)?(?(1)b|c)", "a conditional (?(...)...)"),
        (r"(?>a)", "an atomic group (?>...)"),
        (r"(?#note)a", "a comment (?#...)"),
        (r"(?x)a b", "the flag (?x)"),
        (r"(?a:\w)", "the flag (?a)"),
        (r"a*+", "a possessive quantifier *+"),
        (r"a++", "a possessive quantifier ++"),
        (r"a{2}+", "a possessive quantifier {2}+"),
        (r"a{,3}", "{,3} (write {0,3})"),
        (r"a{1001}", "{1001} (at most 1000 repetitions)"),
        (r"(?:[a-z]{1,63}\.){1,100}", "{1,100} of repetitions (at most 1000 in all)"),
        (r"((?:(a|b{2,}c){10})*x){51}", "{51} of repetitions (at most 1000 in all)"),
        (r"(?P<ä>a)", "the group name ä"),
        (r"a\Z", r"\Z (write $ at the end instead)"),
        (r"[\b]", "[\\b]"),
        (r"[\1]", "[\\1]"),
        (r"\u00e9", r"the escape \u"),
        (r"[\N{DIGIT ONE}]", r"the escape \N"),
        (r"[a[:]", "[: in a character class (escape the bracket)"),
    ],
)
def test_constructs_the_server_reads_differently_are_named(pattern: str, construct: str) -> None:
    re.compile(pattern)
    assert incompatibility(pattern) == construct


def test_a_construct_in_a_character_class_or_escaped_is_only_text() -> None:
    assert incompatibility(r"\(?=a[(?=]\\1") is None
