from __future__ import annotations

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


async def test_it_is_not_confined_to_namespaces() -> None:
    async with Client(Config(server="https://nowhere.invalid")) as client:
        with pytest.raises(SetupError, match="without --namespace"):
            setup(Manager(client, namespaces=["ops"]))
