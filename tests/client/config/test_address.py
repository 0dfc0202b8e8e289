from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.client.config.address import parse_proxy, parse_server, proxy_from_environment
from kubewright.client.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://host", "https://host:443"),
        ("http://host", "http://host:80"),
        ("https://host:6443/", "https://host:6443"),
        (" https://HOST:6443 ", "https://host:6443"),
        ("https://[::1]:6443", "https://[::1]:6443"),
        ("https://[fd00::1]", "https://[fd00::1]:443"),
        ("https://rancher.example/k8s/clusters/c-1/?x=1#y", "https://rancher.example:443/k8s/clusters/c-1"),
    ],
)
def test_server_is_normalised(text: str, expected: str) -> None:
    assert parse_server(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "host:6443",
        "host",
        "ftp://host",
        "https://",
        "https://host:port",
        "https://host:99999",
        "https://[::1",
        "https://a b",
    ],
)
def test_what_is_not_a_url_is_quoted_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="URL; expected one like https://host:6443") as failure:
        parse_server(text)
    assert f'"{text}"' in str(failure.value)


@pytest.mark.parametrize("parse", [parse_server, parse_proxy])
@pytest.mark.parametrize(
    "text", ["https://admin:hunter2@host:port", "socks5://a:hunter2@h", "https://a:hunter2@", "admin:hunter2@host"]
)
def test_password_in_an_address_is_not_part_of_a_message(parse: Callable[[str], str], text: str) -> None:
    with pytest.raises(ValueError, match="…@") as failure:
        parse(text)
    assert "hunter2" not in str(failure.value)


def test_credentials_in_the_server_are_refused() -> None:
    with pytest.raises(ValueError, match='…@host" holds a user name or password') as failure:
        parse_server("https://admin:hunter2@host")
    assert "hunter2" not in str(failure.value)


def test_proxy_keeps_its_user_and_gets_a_port() -> None:
    assert parse_proxy("http://bob:pw@proxy.example/") == "http://bob:pw@proxy.example:80"
    assert parse_proxy("https://proxy.example:3129") == "https://proxy.example:3129"


@pytest.mark.parametrize("scheme", ["socks5", "socks5h", "socks4"])
def test_socks_proxy_is_reported_as_unsupported(scheme: str) -> None:
    with pytest.raises(ValueError, match=f"{scheme} is not supported; expected http or https"):
        parse_proxy(f"{scheme}://proxy:1080")


def test_proxy_comes_from_the_variable_of_the_scheme() -> None:
    environment = {"HTTPS_PROXY": "http://secure:1", "http_proxy": "plain:2"}

    assert proxy_from_environment("https://host:443", environment) == "http://secure:1"
    assert proxy_from_environment("http://host:80", environment) == "http://plain:2"
    assert proxy_from_environment("https://host:443", {}) is None


def test_upper_case_variable_wins() -> None:
    environment = {"HTTPS_PROXY": "http://upper:1", "https_proxy": "http://lower:1"}

    assert proxy_from_environment("https://host:443", environment) == "http://upper:1"


@pytest.mark.parametrize(
    "server", ["https://localhost:6443", "https://127.0.0.1:6443", "https://127.8.8.8:1", "https://[::1]:6443"]
)
def test_loopback_is_never_proxied(server: str) -> None:
    assert proxy_from_environment(server, {"HTTPS_PROXY": "http://proxy:1"}) is None


@pytest.mark.parametrize(
    ("server", "exceptions", "direct"),
    [
        ("https://api.example.com:6443", "example.com", True),
        ("https://example.com:6443", "example.com", True),
        ("https://badexample.com:6443", "example.com", False),
        ("https://api.example.com:6443", ".example.com", True),
        ("https://example.com:6443", ".example.com", False),
        ("https://api.example.com:6443", "*.example.com", True),
        ("https://example.com:6443", "*.example.com", False),
        ("https://api.example.com:6443", "other, EXAMPLE.com ", True),
        ("https://api.example.com:6443", "example.com:6443", True),
        ("https://api.example.com:6443", "example.com:443", False),
        ("https://10.1.2.3:443", "10.0.0.0/8", True),
        ("https://10.1.2.3:443", "10.0.0.5/8", True),
        ("https://11.1.2.3:443", "10.0.0.0/8", False),
        ("https://10.1.2.3:443", "10.1.2.3", True),
        ("https://10.1.2.3:443", "10.1.2.3:443", True),
        ("https://10.1.2.3:443", "10.1.2.3:80", False),
        ("https://10.1.2.3:443", "2.3,10.0.0.0/99", False),
        ("https://[fd00::1]:443", "fd00::/8", True),
        ("https://[fd00::1]:443", "[fd00::1]:443", True),
        ("https://[fd00::1]:443", "fd00::1", True),
        ("https://api.example.com:443", "10.0.0.0/8", False),
        ("https://api.example.com:443", "*", True),
        ("https://api.example.com:443", ",,nonsense/99,:80", False),
        ("https://api.example.com:443", "", False),
    ],
)
def test_no_proxy_is_read_as_go_reads_it(server: str, exceptions: str, direct: bool) -> None:
    environment = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": exceptions}

    assert proxy_from_environment(server, environment) == (None if direct else "http://proxy:3128")


def test_unusable_variable_is_named() -> None:
    with pytest.raises(
        ConfigError, match=r"the environment variable HTTPS_PROXY cannot be used: .* socks5 is not supported"
    ):
        proxy_from_environment("https://host:443", {"HTTPS_PROXY": "socks5://u:hunter2@proxy:1080"})
