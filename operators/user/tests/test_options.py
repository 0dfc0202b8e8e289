from __future__ import annotations

from datetime import timedelta

import pytest
from operators.user import Options, setup
from operators.user.program import NAME

from kubewright import Client, Config, Manager
from kubewright.manager import SetupError
from kubewright.manager.flags import read_flags


def read(*flags: str) -> Options:
    _, values = read_flags(NAME, Options, flags)
    (options,) = values
    assert isinstance(options, Options)
    return options


def test_options_come_from_flags_and_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read() == Options()
    monkeypatch.setenv("USER_OPERATOR_API_SERVER_URL", "https://api.example.com:6443")
    monkeypatch.setenv("USER_OPERATOR_PRIVILEGED_USER", "root,admin")
    assert read() == Options(api_server_url="https://api.example.com:6443", privileged_user=["root", "admin"])
    assert read("--privileged-user", "ops").privileged_user == ["ops"]


def test_a_server_that_is_no_url_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read("--api-server-url", "ftp://here")
    assert "--api-server-url:" in capsys.readouterr().err


def test_times_of_requests_come_from_flags_and_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER_OPERATOR_OPERATION_REQ_RETENTION_TIME", "2h")
    assert read().operation_req_retention_time == timedelta(hours=2)
    assert read("--operation-req-retention-time", "0s").operation_req_retention_time == timedelta(0)
    assert read("--deletion-gate=false", "--guard-requests=false") == Options(
        operation_req_retention_time=timedelta(hours=2), deletion_gate=False, guard_requests=False
    )


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--operation-req-expiration-time", "0s"], "--operation-req-expiration-time: expected more than 0"),
        (["--delete-req-expiration-time", "0s"], "--delete-req-expiration-time: expected more than 0"),
        (["--request-retry-time", "0s"], "--request-retry-time: expected more than 0"),
        (["--request-max-retry-delay", "1ms"], "--request-max-retry-delay: expected at least"),
        (
            ["--audit-file", "/no/such/directory/audit.jsonl"],
            '--audit-file: "/no/such/directory/audit.jsonl" cannot be',
        ),
        (["--audit-file", "/"], '--audit-file: "/" cannot be written: expected a file in a directory that exists'),
        (["--request-workers", "0"], "--request-workers: expected int >= 1"),
    ],
)
def test_times_that_make_no_sense_are_explained(
    flags: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        read(*flags)
    assert expected in capsys.readouterr().err


async def test_it_is_not_confined_to_namespaces() -> None:
    async with Client(Config(server="https://nowhere.invalid")) as client:
        with pytest.raises(SetupError, match="without --namespace"):
            setup(Manager(client, namespaces=["ops"]))
