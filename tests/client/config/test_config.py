from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubewright.client.config import in_cluster
from kubewright.client.config.config import Config
from kubewright.client.config.credentials import ANONYMOUS, StaticCredentials, bearer
from kubewright.client.config.impersonation import Impersonation
from kubewright.client.config.tls import TLS
from kubewright.client.errors import ConfigError


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of our own, outside a cluster."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    (home / ".kube").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


def write(path: Path, server: str, context: str = "x") -> Path:
    path.write_text(
        f"clusters: [{{name: {server}, cluster: {{server: 'https://{server}'}}}}]\n"
        f"contexts: [{{name: {context}, context: {{cluster: {server}}}}}]\n"
        f"current-context: {context}\n"
    )
    return path


@pytest.fixture
def in_pod(monkeypatch: pytest.MonkeyPatch) -> Config:
    config = Config(server="https://in-cluster")
    monkeypatch.setattr(in_cluster, "why_not_in_cluster", lambda: None)
    monkeypatch.setattr(in_cluster, "config_in_cluster", lambda: config)
    return config


def test_sources_are_tried_in_the_order_of_controller_runtime(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_pod: Config
) -> None:
    explicit, variable = write(tmp_path / "explicit", "explicit"), write(tmp_path / "variable", "variable")
    write(home / ".kube" / "config", "home")

    monkeypatch.setenv("KUBECONFIG", str(variable))
    assert Config.load(kubeconfig=explicit).server == "https://explicit:443"
    assert Config.load().server == "https://variable:443"
    monkeypatch.delenv("KUBECONFIG")
    assert Config.load() is in_pod


def test_file_in_the_home_directory_is_the_last_source(home: Path) -> None:
    write(home / ".kube" / "config", "home")

    assert Config.load().server == "https://home:443"


def test_context_is_meant_for_a_kubeconfig_even_in_a_pod(home: Path, in_pod: Config) -> None:
    write(home / ".kube" / "config", "home", context="dev")

    assert Config.load(context="dev").server == "https://home:443"


def test_context_may_be_named(tmp_path: Path) -> None:
    first, second = write(tmp_path / "a", "one", context="x"), write(tmp_path / "b", "two", context="z")

    assert Config.from_kubeconfig(first, second).server == "https://one:443"
    assert Config.from_kubeconfig(first, second, context="z").server == "https://two:443"
    assert Config.load(kubeconfig=str(first), context="x").server == "https://one:443"
    with pytest.raises(ConfigError, match=r'the context "z" is not defined \(contexts: x\)'):
        Config.load(kubeconfig=first, context="z")


def test_kubeconfig_variable_may_name_several_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = write(tmp_path / "a", "one", context="x"), write(tmp_path / "b", "two", context="z")
    monkeypatch.setenv(
        "KUBECONFIG", os.pathsep.join(["", str(tmp_path / "missing"), str(first), str(first), str(second)])
    )

    assert Config.load().server == "https://one:443"
    assert Config.load(context="z").server == "https://two:443"


def test_kubeconfig_variable_that_names_nothing_is_an_error(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another configuration than the requested one would be worse."""
    write(home / ".kube" / "config", "home")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "missing"))

    with pytest.raises(ConfigError, match=f'cannot read the kubeconfig "{tmp_path}/missing": there is no such file'):
        Config.load()


def test_explicit_file_must_exist_and_may_start_with_a_tilde(home: Path) -> None:
    write(home / "mine", "tilde")

    assert Config.load(kubeconfig="~/mine").server == "https://tilde:443"
    with pytest.raises(ConfigError, match=f'cannot read the kubeconfig "{home}/other": there is no such file'):
        Config.load(kubeconfig="~/other")


def test_without_any_source_everything_that_was_tried_is_listed(home: Path) -> None:
    with pytest.raises(ConfigError) as failure:
        Config.load()

    assert str(failure.value) == (
        "no configuration was found; name a kubeconfig or set KUBECONFIG. Tried:\n"
        "  KUBECONFIG: the environment variable is not set\n"
        "  the pod's service account: the environment variable KUBERNETES_SERVICE_HOST is not set\n"
        f"  {home}/.kube/config: there is no such file"
    )


def test_user_without_a_home_gets_the_same_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters run containers under user ids that no passwd file knows."""

    def no_home(path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", no_home)

    with pytest.raises(ConfigError, match=r"~/\.kube/config: there is no such file"):
        Config.load()


def test_text_of_a_kubeconfig_is_enough(tmp_path: Path) -> None:
    text = write(tmp_path / "a", "text").read_text()

    assert Config.from_kubeconfig_text(text).server == "https://text:443"
    with pytest.raises(ConfigError, match='cannot read the kubeconfig given as text: the context "z" is not defined'):
        Config.from_kubeconfig_text(text, context="z")


def test_program_may_set_every_field_itself() -> None:
    config = Config(server="https://HOST/", proxy="http://proxy")

    assert (config.server, config.proxy, config.namespace) == ("https://host:443", "http://proxy:80", "default")
    assert (config.tls, config.credentials) == (TLS(), ANONYMOUS)


def test_bad_addresses_are_config_errors() -> None:
    with pytest.raises(ConfigError, match='server: "host" is not an http or https URL'):
        Config(server="host")
    with pytest.raises(ConfigError, match=r"proxy: .* socks5 is not supported"):
        Config(server="https://host", proxy="socks5://proxy")


def test_impersonating_copies() -> None:
    config = Config(server="https://host", namespace="ops")

    copy = config.impersonating("jane", groups=["dev"], uid="7", extra={"scopes": ["view"]})

    assert copy.impersonate == Impersonation(user="jane", groups=("dev",), uid="7", extra={"scopes": ["view"]})
    assert (copy.server, copy.namespace) == (config.server, "ops")
    assert config.impersonate is None


def test_repr_shows_no_secret() -> None:
    credentials = StaticCredentials(bearer("s3cr3t"))

    assert "s3cr3t" not in repr(Config(server="https://host", credentials=credentials, proxy="http://u:s3cr3t@proxy"))


def test_yaml_parser_is_loaded_only_for_yaml(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        """{"current-context": "a", "clusters": [{"name": "b", "cluster": {"server": "https://c:6443"}}],
        "contexts": [{"name": "a", "context": {"cluster": "b"}}]}"""
    )
    code = f"""
import sys, kubewright.client.config.in_cluster
from kubewright.client import Config
assert Config.load(kubeconfig={str(kubeconfig)!r}).server == "https://c:6443"
sys.exit("yaml" in sys.modules)
"""

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
