"""Addresses and networks in forms that others read in another way; the messages are those of kube-apiserver v1.36.4."""

from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.builtins.values import address, network

NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
NO_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("1.2.3.4", ""),
        ("::1", ""),
        ("01.2.3.4", "must not have leading 0s"),
        ("00.0.0.0", "must not have leading 0s"),
        ("0256.1.1.1", NO_ADDRESS),
        ("1.2.3", NO_ADDRESS),
        ("1.2.3.4 ", NO_ADDRESS),
        ("fe80::1%eth0", NO_ADDRESS),
        ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
    ],
)
def test_an_address_can_mean_one_thing_only(value: str, wrong: str) -> None:
    assert [error.detail for error in address("ip", value)] == [wrong] * bool(wrong)


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("1.2.3.0/24", ""),
        ("0.0.0.0/0", ""),
        ("1.2.3.4/32", ""),
        ("1.2.3.4/24", "must not have bits set beyond the prefix length"),
        ("2001:db8::1/64", "must not have bits set beyond the prefix length"),
        ("1.2.3.0/024", "must not have leading 0s in IP or prefix length"),
        ("01.2.3.0/24", "must not have leading 0s in IP or prefix length"),
        ("1.2.3.0", NO_NETWORK),
        ("1.2.3.0/", NO_NETWORK),
        ("1.2.3.0/33", NO_NETWORK),
        ("1.2.3.0/255.255.255.0", NO_NETWORK),
    ],
)
def test_a_network_can_mean_one_thing_only(value: str, wrong: str) -> None:
    assert [error.detail for error in network("cidr", value)] == [wrong] * bool(wrong)
