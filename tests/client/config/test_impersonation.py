from __future__ import annotations

import pytest

from kubewright.client.config.impersonation import Impersonation
from kubewright.client.errors import ConfigError


def test_headers_are_spelled_as_kubernetes_spells_them() -> None:
    impersonation = Impersonation(
        user="jane",
        groups=("dev", "ops"),
        uid="7",
        extra={"scopes": ["view", "edit"], "example.com/Project name%": ["äpfel"]},
    )

    assert impersonation.headers() == [
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-scopes", "view"),
        ("Impersonate-Extra-scopes", "edit"),
        ("Impersonate-Extra-example.com%2FProject%20name%25", "äpfel"),
    ]


def test_a_user_alone_sends_one_header() -> None:
    assert Impersonation(user="jane").headers() == [("Impersonate-User", "jane")]


def test_groups_without_a_user_are_refused() -> None:
    with pytest.raises(ConfigError, match="impersonation needs a user"):
        Impersonation(user="", groups=("dev",))


def test_a_line_break_cannot_smuggle_a_header() -> None:
    with pytest.raises(ConfigError, match="the value of Impersonate-Group holds characters"):
        Impersonation(user="jane", groups=("dev\r\nImpersonate-Group: system:masters",))
