from __future__ import annotations

import base64
import logging
from pathlib import Path

import pytest

from kubewright.client.config.credentials import (
    ANONYMOUS,
    Credential,
    FileCredentials,
    StaticCredentials,
    basic,
    bearer,
    read_token,
)
from kubewright.client.config.tls import Certificate
from kubewright.client.errors import CredentialError

SECRET = "s3cr3t-t0k3n"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def token_file(path: Path, clock: Clock, fallback: Credential | None = None) -> FileCredentials:
    return FileCredentials(lambda: bearer(read_token(path, origin="of the test")), fallback=fallback, clock=clock)


async def test_anonymous_sends_nothing_and_has_no_successor() -> None:
    credential = await ANONYMOUS.current()

    assert credential == Credential()
    assert dict(credential.headers) == {}
    assert credential.certificate is None
    assert not await ANONYMOUS.rejected(credential)


async def test_rejection_of_a_static_credential_is_final() -> None:
    credentials = StaticCredentials(bearer(SECRET))

    assert not await credentials.rejected(await credentials.current())


def test_bearer_and_basic_are_spelled_as_http_spells_them() -> None:
    assert dict(bearer("abc").headers) == {"Authorization": "Bearer abc"}
    encoded = base64.b64encode("jürgen:pass:word".encode()).decode()
    assert dict(basic("jürgen", "pass:word").headers) == {"Authorization": f"Basic {encoded}"}


@pytest.mark.parametrize("token", [f"{SECRET}\nX-Evil: 1", f"{SECRET}\x00", f"{SECRET}ü"])
def test_token_that_no_header_can_carry_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(CredentialError, match='the token of user "ci" cannot be sent') as failure:
        bearer(token, origin='of user "ci"')
    assert SECRET not in str(failure.value)


async def test_file_is_read_once_a_minute(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", Clock()
    path.write_text(" one\n")
    credentials = token_file(path, clock)
    path.write_text("two")

    clock.now += 59.9
    assert await credentials.current() == bearer("one")
    clock.now += 0.1
    assert await credentials.current() == bearer("two")


async def test_rejected_file_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = token_file(path, Clock())
    old = await credentials.current()
    path.write_text("two")

    assert await credentials.rejected(old)
    assert await credentials.current() == bearer("two")


async def test_retry_makes_no_sense_while_the_file_contains_the_same(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = token_file(path, Clock())

    assert not await credentials.rejected(await credentials.current())


async def test_retry_makes_sense_when_another_request_brought_the_new_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one")
    credentials = token_file(path, Clock())
    old = await credentials.current()
    path.write_text("two")
    await credentials.rejected(old)

    assert await credentials.rejected(old)


async def test_last_token_stays_in_use_while_the_file_is_gone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, clock = tmp_path / "token", Clock()
    path.write_text(SECRET)
    credentials = token_file(path, clock)
    path.unlink()

    clock.now += 60
    with caplog.at_level(logging.DEBUG):
        credential = await credentials.current()
        assert not await credentials.rejected(credential)

    assert credential == bearer(SECRET)
    assert str(path) in caplog.text
    assert SECRET not in caplog.text


async def test_fallback_counts_only_until_the_file_could_be_read(tmp_path: Path) -> None:
    path, clock = tmp_path / "token", Clock()
    credentials = token_file(path, clock, fallback=bearer("fallback"))
    assert await credentials.current() == bearer("fallback")

    path.write_text("file")
    clock.now += 60
    assert await credentials.current() == bearer("file")

    path.unlink()
    clock.now += 60
    assert await credentials.current() == bearer("file")


@pytest.mark.parametrize(
    ("content", "problem"),
    [(None, "No such file"), (b" \n", "the file is empty"), (b"\xff", "it is not ASCII text")],
)
def test_unreadable_token_file_is_named(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(CredentialError) as failure:
        token_file(path, Clock())
    assert f'the token of the test cannot be read from "{path}": {problem}' in str(failure.value)


def test_repr_shows_neither_token_nor_key() -> None:
    certificate = Certificate(chain=b"chain", key=SECRET.encode())
    for shown in (
        repr(bearer(SECRET, certificate=certificate)),
        repr(basic("bob", SECRET)),
        repr(StaticCredentials(bearer(SECRET))),
        repr(FileCredentials(lambda: bearer(SECRET))),
    ):
        assert SECRET not in shown
        assert base64.b64encode(f"bob:{SECRET}".encode()).decode() not in shown
