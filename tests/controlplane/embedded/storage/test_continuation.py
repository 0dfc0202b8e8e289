"""The texts were read off kube-apiserver v1.36.4."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.storage.continuation import (
    Continuation,
    decode_continue,
    encode_continue,
    expired_continue,
)

PREFIX = "/core/configmaps/n1/"


def encoded(text: str | bytes) -> str:
    data = text if isinstance(text, bytes) else text.encode()
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def decoded(token: str) -> bytes:
    return urlsafe_b64decode(token + "=" * (-len(token) % 4))


def test_a_token_has_the_form_of_kube_apiserver() -> None:
    token = encode_continue(260, f"{PREFIX}c1\0", PREFIX)

    assert token == "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjYwLCJzdGFydCI6Ii9jMVx1MDAwMCJ9"
    assert decoded(token) == b'{"v":"meta.k8s.io/v1","rv":260,"start":"/c1\\u0000"}'


@given(st.text(alphabet="abc-./", min_size=1).filter(lambda name: {"", ".", ".."}.isdisjoint(name.split("/"))))
def test_a_token_leads_to_the_key_it_was_made_of(name: str) -> None:
    token = encode_continue(7, f"{PREFIX}{name}\0", PREFIX)

    assert decode_continue(token, PREFIX) == Continuation(f"{PREFIX}{name}\0", 7)


@pytest.mark.parametrize("revision", [-1, -7])
def test_a_revision_may_be_negative(revision: int) -> None:
    token = encoded(f'{{"v":"meta.k8s.io/v1","rv":{revision},"start":"x"}}')

    assert decode_continue(token, PREFIX) == Continuation(f"{PREFIX}x", revision)


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ('{"V":"meta.k8s.io/v1","RV":5,"START":"x"}', f"{PREFIX}x"),
        ('{"v":"meta.k8s.io/v1","rv":5,"start":"/"}', PREFIX),
        ('{"v":"meta.k8s.io/v1","rv":5,"start":"a/\\u0000"}', f"{PREFIX}a/\0"),
        ('\n{"more":[1],"v":"meta.k8s.io/v1","rv":5,"start":"x"} ', f"{PREFIX}x"),
    ],
)
def test_tokens_are_read_as_leniently_as_go_reads_them(text: str, start: str) -> None:
    assert decode_continue(encoded(text), PREFIX) == Continuation(start, 5)


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("x", "illegal base64 data at input byte 0"),
        ("!!!", "illegal base64 data at input byte 0"),
        ("abc=", "illegal base64 data at input byte 3"),
        ("abc\ndefg+", "illegal base64 data at input byte 8"),
        ("abcde", "illegal base64 data at input byte 4"),
        ("a\nb", "invalid character 'i' looking for beginning of value"),
        (encoded("{"), "unexpected end of JSON input"),
        (encoded("abc"), "invalid character 'a' looking for beginning of value"),
        (encoded("[]"), "json: cannot unmarshal array into Go value of type storage.continueToken"),
        (encoded('"s"'), "json: cannot unmarshal string into Go value of type storage.continueToken"),
        (encoded("5"), "json: cannot unmarshal number into Go value of type storage.continueToken"),
        (encoded("null"), "server does not recognize this encoded version "),
        (encoded('{"rv":5,"start":"x"}'), "server does not recognize this encoded version "),
        (encoded('{"v":"v2","rv":5,"start":"x"}'), "server does not recognize this encoded version v2"),
        (encoded('{"v":1}'), "json: cannot unmarshal number into Go struct field continueToken.v of type string"),
        (encoded('{"rv":"5"}'), "json: cannot unmarshal string into Go struct field continueToken.rv of type int64"),
        (
            encoded('{"rv":5.5}'),
            "json: cannot unmarshal number 5.5 into Go struct field continueToken.rv of type int64",
        ),
        (
            encoded('{"rv":99999999999999999999}'),
            "json: cannot unmarshal number 99999999999999999999 into Go struct field continueToken.rv of type int64",
        ),
        (
            encoded('{"start":[]}'),
            "json: cannot unmarshal array into Go struct field continueToken.start of type string",
        ),
        (
            encoded('{"v":"meta.k8s.io/v1","start":"x"}'),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (encoded('{"v":"meta.k8s.io/v1","rv":5}'), "encoded start key empty (version meta.k8s.io/v1)"),
        (encoded('{"v":"meta.k8s.io/v1","rv":5,"start":null}'), "encoded start key empty (version meta.k8s.io/v1)"),
        (encoded('{"v":"meta.k8s.io/v1","rv":5,"start":"../x"}'), "../x"),
        (encoded('{"v":"meta.k8s.io/v1","rv":5,"start":"a//x"}'), "a//x"),
        (encoded('{"v":"meta.k8s.io/v1","rv":5,"start":"a/./x"}'), "a/./x"),
        (encoded('{"v":"meta.k8s.io/v1","rv":5,"start":"a/"}'), "a/"),
        (encoded('{"v":"meta.k8s.io/v1","rv":5,"start":"//"}'), "//"),
        (encoded('{"a":' + "[" * 5000 + "]" * 5000 + "}"), "exceeded max depth"),
        (encoded("[" * 20_000), "invalid character '[' exceeded max depth"),
    ],
)
def test_a_token_no_list_has_given_out_is_refused_with_kubernetes_message(token: str, why: str) -> None:
    with pytest.raises(StatusError) as caught:
        decode_continue(token, PREFIX)

    assert (caught.value.code, caught.value.reason) == (400, "BadRequest")
    assert caught.value.message == f"invalid continue token: continue key is not valid: {why}"


@given(st.binary(max_size=40) | st.text(alphabet='{}[]":,vrstart0-9/.\\', max_size=20).map(str.encode))
def test_whatever_is_sent_is_either_a_token_or_a_bad_request(data: bytes) -> None:
    for token in (encoded(data), data.decode("latin-1")):
        with suppress(StatusError):
            assert decode_continue(token, PREFIX).start.startswith(PREFIX)


def test_an_expired_page_offers_to_go_on_in_the_present() -> None:
    error = expired_continue(PREFIX, f"{PREFIX}c1\0")

    assert (error.code, error.reason) == (410, "Expired")
    assert error.message.startswith("The provided continue parameter is too old to display a consistent list result.")
    token = error.metadata["continue"]
    assert isinstance(token, str)
    assert decoded(token) == b'{"v":"meta.k8s.io/v1","rv":-1,"start":"c1\\u0000"}'
    assert decode_continue(token, PREFIX) == Continuation(f"{PREFIX}c1\0", -1)
