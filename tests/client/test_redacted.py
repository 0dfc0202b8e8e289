"""What is shown of structures that hold secrets."""

from __future__ import annotations

from typing import ClassVar

from kubewright.client.redacted import Redacted


class Login(Redacted, frozen=True):
    user: str
    password: str
    __shown__: ClassVar = ("user",)


class Token(Redacted, frozen=True):
    value: str


def test_only_what_is_named_is_shown() -> None:
    assert repr(Login("bob", "s3cr3t")) == "Login(user='bob')"
    assert str([Token("s3cr3t")]) == "[Token()]"


def test_pretty_printers_show_no_more() -> None:
    assert Login("bob", "s3cr3t").__rich_repr__() == [("user", "bob")]
    assert Token("s3cr3t").__rich_repr__() == []


def test_what_is_not_shown_is_compared_all_the_same() -> None:
    assert Login("bob", "s3cr3t") == Login("bob", "s3cr3t")
    assert Login("bob", "s3cr3t") != Login("bob", "other")
