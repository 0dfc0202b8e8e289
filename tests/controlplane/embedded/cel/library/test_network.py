"""IP addresses, CIDRs and URLs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

HOLD = [
    "isIP('127.0.0.1') && isIP('::1') && !isIP('127.0.0.256') && !isIP('1.2.3') && !isIP('::ffff:1.2.3.4')",
    "ip('192.168.0.1').family() == 4 && ip('2001:db8::1').family() == 6",
    "ip.isCanonical('127.0.0.1') && !ip.isCanonical('2001:DB8::1')",
    "ip('127.0.0.1').isLoopback() && ip('0.0.0.0').isUnspecified() && ip('224.0.0.1').isLinkLocalMulticast()",
    "ip('169.254.1.1').isLinkLocalUnicast() && ip('10.1.1.1').isGlobalUnicast() && !ip('::1').isGlobalUnicast()",
    "string(ip('2001:0db8::0001')) == '2001:db8::1' && type(ip('::1')) == net.IP && ip('::1') == ip('0::1')",
    "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && !cidr('10.1.0.0/16').containsCIDR(cidr('10.0.0.0/8'))",
    "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.2.3/8') != cidr('10.0.0.0/8')",
    "cidr('10.1.2.3/8').prefixLength() == 8 && cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
    "string(cidr('fe80::1/64')) == 'fe80::1/64' && isCIDR('::/0') && !isCIDR('10.0.0.0/33') && !isCIDR('10.0.0.0')",
    "isURL('http://a') && isURL('/abs/path') && !isURL('rel/path') && !isURL('') && isURL('mailto:a@b')",
    "url('https://u:p@host:8080/p%20q?x=1&x=2#f').getScheme() == 'https'",
    "url('https://u:p@host:8080/p').getHost() == 'host:8080' && url('https://host:8080/').getHostname() == 'host'",
    "url('https://host:8080/').getPort() == '8080' && url('http://[::1]:80/').getHostname() == '::1'",
    "url('https://h/p q').getEscapedPath() == '/p%20q' && url('https://h/p%20q').getEscapedPath() == '/p%20q'",
    "url('https://h/?x=1&x=2&y=a+b').getQuery() == {'x': ['1', '2'], 'y': ['a b']}",
]
FAIL = [
    (
        "ip('1.2.3')",
        'IP Address "1.2.3" parse error during conversion from string: ParseAddr("1.2.3"): IPv4 address too short',
    ),
    (
        "ip('01.2.3.4')",
        'IP Address "01.2.3.4" parse error during conversion from string: ParseAddr("01.2.3.4"): IPv4 field has octet '
        "with leading zero",
    ),
    (
        "ip('::g')",
        'IP Address "::g" parse error during conversion from string: ParseAddr("::g"): each colon-separated field must '
        'have at least one digit (at "g")',
    ),
    ("ip('fe80::1%eth0')", 'IP address "fe80::1%eth0" with zone value is not allowed'),
    (
        "cidr('1.2.3.4')",
        "network address parse error during conversion from string: network address parse error during conversion from "
        "string: netip.ParsePrefix(\"1.2.3.4\"): no '/'",
    ),
    (
        "cidr('10.0.0.0/33')",
        "network address parse error during conversion from string: network address parse error during conversion from "
        'string: netip.ParsePrefix("10.0.0.0/33"): prefix length out of range',
    ),
    ("url('x')", 'URL parse error during conversion from string: parse "x": invalid URI for request'),
    (
        "url('http://a:b/')",
        'URL parse error during conversion from string: parse "http://a:b/": invalid port ":b" after host',
    ),
    (
        "url('http://a/%zz')",
        'URL parse error during conversion from string: parse "http://a/%zz": invalid URL escape "%zz"',
    ),
]


@pytest.mark.parametrize("rule", HOLD)
def test_rule_holds(rule: str, outcome: Callable[[str], str]) -> None:
    assert outcome(rule) == ""


@pytest.mark.parametrize(("expression", "complaint"), FAIL)
def test_an_invalid_address_is_reported(expression: str, complaint: str, outcome: Callable[[str], str]) -> None:
    rule = f"{expression} == {expression}"
    assert outcome(rule) == f"{complaint} evaluating rule: {rule}"
