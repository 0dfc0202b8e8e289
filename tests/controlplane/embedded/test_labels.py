from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.labels import label_key_problems, label_value_problems, subdomain_problems

NAME = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"


@pytest.mark.parametrize("key", ["a", "A-b_c.9", "example.com/a", "a.b-c/X", "a" * 63, f"{'a' * 253}/b"])
def test_a_valid_key_has_no_problems(key: str) -> None:
    assert label_key_problems(key) == []


@pytest.mark.parametrize(
    ("key", "problems"),
    [
        ("", ["name part must be non-empty", f"name part {NAME} (e.g."]),
        ("-a", [f"name part {NAME} (e.g."]),
        ("a\n", [f"name part {NAME} (e.g."]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("é" * 32, ["name part must be no more than 63 bytes", f"name part {NAME}"]),
        ("/a", ["prefix part must be non-empty"]),
        ("x/", ["name part must be non-empty", f"name part {NAME}"]),
        ("A/a", ["prefix part a lowercase RFC 1123 subdomain must consist of lower case"]),
        (f"{'x' * 254}/a", ["prefix part must be no more than 253 bytes"]),
        ("a/b/c", [f"a valid label key {NAME}"]),
    ],
)
def test_every_problem_of_a_key_is_told(key: str, problems: list[str]) -> None:
    found = label_key_problems(key)

    assert len(found) == len(problems)
    for problem, beginning in zip(found, problems, strict=True):
        assert problem.startswith(beginning)


@pytest.mark.parametrize("value", ["", "a", "A-b_c.9", "a" * 63])
def test_a_valid_value_has_no_problems(value: str) -> None:
    assert label_value_problems(value) == []


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("a" * 64, ["must be no more than 63 bytes"]),
        (".a", ["a valid label must be an empty string or consist of"]),
        ("a/b", ["a valid label must be an empty string or consist of"]),
        ("-" * 64, ["must be no more than 63 bytes", "a valid label must be an empty string or consist of"]),
    ],
)
def test_every_problem_of_a_value_is_told(value: str, problems: list[str]) -> None:
    found = label_value_problems(value)

    assert len(found) == len(problems)
    for problem, beginning in zip(found, problems, strict=True):
        assert problem.startswith(beginning)


def test_a_subdomain_has_labels_between_single_dots() -> None:
    assert subdomain_problems("a.b-c.9") == []
    assert subdomain_problems("a..b") == [
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    ]
