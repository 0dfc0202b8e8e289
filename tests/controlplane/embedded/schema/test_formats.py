from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.schema.formats import FORMATS, recognized

# Judged by a real kube-apiserver.
VALID = {
    "uri": ["http://a", "/a/b", "http://[::1]:80/x", "mailto:x", "*", "//x", "http://u:p@h/"],
    "email": ["a@b", "A B <a@b.c>", "<a@b>", '"x y"@b.c', "a@[1.2.3.4]", "ä@b.c"],
    "hostname": ["a", "a.bc", "ü.de", "€"],
    "ipv4": ["1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"],
    "ipv6": ["::1", "::ffff:1.2.3.4"],
    "cidr": ["1.2.3.4/8", "::/0", "01.2.3.4/08"],
    "mac": ["01:23:45:67:89:ab", "0123.4567.89ab", "01-23-45-67-89-ab"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"],
    "uuid3": ["123e4567-e89b-32d3-a456-426614174000"],
    "uuid4": ["123e4567-e89b-42d3-a456-426614174000"],
    "uuid5": ["123e4567-e89b-52d3-a456-426614174000"],
    "isbn": ["0321751043", "978-0321751041"],
    "isbn10": ["0-8044-2957-X"],
    "isbn13": ["978-0321751041"],
    "creditcard": ["4111 1111 1111 1111", "5105105105105100"],
    "ssn": ["111-11-1111", "111 11 1111"],
    "hexcolor": ["#fff", "ffffff"],
    "rgbcolor": ["rgb(255,255,255)", "rgb( 1 , 2,3 )"],
    "byte": ["YWJj", "YQ=="],
    "password": ["anything"],
    "date": ["2020-02-29", "0000-02-29"],
    "duration": ["1h", "1h30m", "22 ns", "1 day", "-1.5h", "1week", "0", "1d", "1µs"],
    "datetime": ["2020-01-01T00:00:00Z", "2020-01-01t00:00:00z", "2020-01-01T00:00:00+01:00", "2020-01-01T00:00:00.5Z"],
    "k8sshortname": ["a", "a-b"],
    "k8slongname": ["a.b"],
    "bsonobjectid": ["507f1f77bcf86cd799439011"],
}
INVALID = {
    "uri": ["", "a", "http://a b/", "http://%zz", "http://h:x/", "ht!tp://x", ":x", "http://a/%zz", "/a\n"],
    "email": ["a", "a@", "a@b@c", "a.@b"],
    "hostname": ["-a", "a-.com", "a_b", "ex.c0m", "1.2.3.4", "a..b", "x" * 64, "a.b.com."],
    "ipv4": ["1.2.3", "::1", "1.2.3.256", "1.2.3.4.5", ""],
    "ipv6": ["1.2.3.4", "fe80::1%eth0", "g::"],
    "cidr": ["1.2.3.4/33", "::/129", "1.2.3.4"],
    "mac": ["01:23:45:67:89", "01:23-45:67:89:ab"],
    "uuid": ["x"],
    "uuid3": ["123e4567-e89b-12d3-a456-426614174000"],
    "uuid4": ["123e4567-e89b-42d3-7456-426614174000"],
    "isbn": ["123"],
    "isbn10": ["0321751044"],
    "isbn13": ["978-0321751042"],
    "creditcard": ["4111111111111112"],
    "ssn": ["111111111"],
    "hexcolor": ["#ff"],
    "rgbcolor": ["rgb(256,0,0)"],
    "byte": ["", "YWJ", "YQ=", "a-b_"],
    "date": ["2021-02-29", "2020-1-1", "20200101", "2020-01-01\n"],
    "duration": ["x", "5", "3 parsecs"],
    "datetime": ["2020-01-01T24:00:00Z", "2020-01-01 00:00:00Z", "2020-01-01T00:00:00", "2020-01-01T00:00:60Z", "T"],
    "k8sshortname": ["-a", "A", "a.b", "a" * 64],
    "k8slongname": ["a..b", "A"],
    "bsonobjectid": ["x"],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in VALID.items() for text in texts])
def test_a_text_in_its_format_is_accepted(name: str, text: str) -> None:
    assert FORMATS[name](text)


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in INVALID.items() for text in texts])
def test_a_text_in_another_format_is_refused(name: str, text: str) -> None:
    assert not FORMATS[name](text)


@pytest.mark.parametrize(
    ("name", "type_", "expected"),
    [
        ("date-time", "string", True),
        ("datetime", "", True),
        ("int32", "string", False),
        ("int32", "integer", True),
        ("uint8", "integer", False),
        ("double", "number", True),
        ("date", "object", False),
    ],
)
def test_a_format_is_recognized_for_its_type_only(name: str, type_: str, expected: bool) -> None:
    assert recognized(name, type_) is expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("email", "a" * 50_000),
        ("email", "a." * 25_000 + "@"),
        ("email", '"x" ' * 10_000),
        ("duration", "1" * 200_000),
        ("duration", "1" + " " * 200_000),
        ("uri", "http://" + "%" * 50_000),
        ("byte", "a" * 50_001),
        ("rgbcolor", "rgb(" + " " * 50_000),
    ],
)
def test_a_hostile_text_is_refused_at_once(name: str, text: str) -> None:
    """In all ways in which its parts could be read, one after the other, this would take for ever."""
    assert not FORMATS[name](text)


def test_a_prefix_of_thousands_of_digits_is_no_network() -> None:
    assert not FORMATS["cidr"]("1.2.3.4/" + "1" * 5000)
    assert not FORMATS["cidr"]("::1/" + "1" * 5000)
    assert FORMATS["cidr"]("1.2.3.4/" + "0" * 5000 + "8")
