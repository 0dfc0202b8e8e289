from __future__ import annotations

import pytest

from kubewright.client.errors import ConfigError
from kubewright.client.http.server_url import ServerURL


def test_host_port_and_path_prefix_are_taken_from_the_address() -> None:
    endpoint = ServerURL.of_server("https://rancher.example.com:8443/k8s/clusters/c-1/")
    assert (endpoint.tls, endpoint.host, endpoint.port) == (True, "rancher.example.com", 8443)
    assert endpoint.authority == "rancher.example.com:8443"
    assert endpoint.path == "/k8s/clusters/c-1"


@pytest.mark.parametrize(("url", "port"), [("https://host", 443), ("http://host", 80), ("http://host/", 80)])
def test_the_port_has_the_default_of_the_scheme(url: str, port: int) -> None:
    endpoint = ServerURL.of_server(url)
    assert (endpoint.port, endpoint.authority, endpoint.path) == (port, "host", "")


def test_an_ipv6_address_has_brackets_only_where_they_belong() -> None:
    endpoint = ServerURL.of_server("https://[fd00::1]:6443")
    assert (endpoint.host, endpoint.authority, endpoint.address) == ("fd00::1", "[fd00::1]:6443", "[fd00::1]:6443")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("host:6443", "https://"),
        ("ftp://host", '"ftp"'),
        ("https://", "names no host"),
        ("https://host:port", "cannot be parsed"),
        ("https://[::1", "cannot be parsed"),
        ("https://host?a=b", "query"),
    ],
)
def test_a_bad_address_says_what_was_expected(url: str, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected):
        ServerURL.of_server(url)


def test_a_password_in_the_address_of_a_server_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        ServerURL.of_server("https://bob:s3cret@host")
    assert "s3cret" not in str(caught.value)
    assert "host:443" in str(caught.value)


def test_the_user_of_a_proxy_becomes_a_header_field_and_is_not_shown() -> None:
    endpoint = ServerURL.of_proxy("http://b%40b:s3cret@proxy:3128")
    assert endpoint.authorization == "Basic YkBiOnMzY3JldA=="
    assert endpoint.authority == "proxy:3128"
    assert "YkBiOnMzY3JldA" not in repr(endpoint)


@pytest.mark.parametrize("url", ["socks5://bob:s3cret@proxy:1080", "http://bob:s3cret@proxy:bad"])
def test_a_bad_proxy_address_does_not_show_its_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ServerURL.of_proxy(url)
    assert "s3cret" not in str(caught.value)
    assert "proxy address" in str(caught.value)
