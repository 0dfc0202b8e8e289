from collections.abc import Callable

import pytest
from msgspec.json import encode

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.decoding import decode_body, decode_json, decode_yaml
from kubewright.controlplane.embedded.apimachinery.status import StatusError


def no_protobuf(body: bytes) -> JSONObject:
    raise AssertionError("no protobuf was sent")


def test_json_is_the_default() -> None:
    assert decode_body("", b'{"a":1}', protobuf=no_protobuf) == {"a": 1}
    assert decode_body("application/merge-patch+json", b"[1]", protobuf=no_protobuf) == [1]


def test_yaml_reads_dates_as_the_strings_they_are() -> None:
    assert decode_yaml(b"a: 2026-01-01\nb: 2026-01-01T00:00:00Z\nc: {d: [1, 2]}") == {
        "a": "2026-01-01",
        "b": "2026-01-01T00:00:00Z",
        "c": {"d": [1, 2]},
    }


def test_flow_style_yaml_is_not_mistaken_for_json() -> None:
    assert decode_yaml(b"{a: 1}") == {"a": 1}


def test_an_unknown_content_type_is_415() -> None:
    with pytest.raises(StatusError) as caught:
        decode_body("text/plain", b"", protobuf=no_protobuf)
    assert caught.value.code == 415


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b"NaN", b"[" * 100_000])
def test_malformed_json_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(StatusError) as caught:
        decode_json(body)
    assert caught.value.code == 400


@pytest.mark.parametrize("body", [b"a: [", b"\xff", b"a: &a [*a]", b"[" * 25_000, b"- " * 25_000])
def test_malformed_yaml_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(StatusError) as caught:
        decode_yaml(body)
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("body", "text"), [(b'"a\xff\xfe"', "a\ufffd\ufffd"), (b'"\xe2\x82"', "\ufffd\ufffd"), (b'"\\ud800b"', "\ufffdb")]
)
def test_invalid_unicode_is_replaced_as_go_does(body: bytes, text: str) -> None:
    assert decode_json(b'{"a":%b}' % body) == {"a": text}


def test_a_tag_of_another_language_means_nothing() -> None:
    assert decode_yaml(b"a: !!python/object/apply:os.getcwd []\nb: !x y z\n") == {"a": [], "b": "y z"}


def test_of_several_documents_the_first_counts() -> None:
    assert decode_yaml(b"a: 1\n---\nb: 2\n") == {"a": 1}
    assert decode_yaml(b"") is None


def test_one_letter_is_enough_for_truth() -> None:
    assert decode_yaml(b"{a: y, b: N, c: 'y', on: d}") == {"a": True, "b": False, "c": "y", "true": "d"}


@pytest.mark.parametrize("levels", [600, 9_999])
@pytest.mark.parametrize("decode", [decode_json, decode_yaml])
def test_thousands_of_levels_are_read(decode: Callable[[bytes], JSONValue], levels: int) -> None:
    deep = b'{"a":' * levels + b"1" + b"}" * levels

    assert encode(decode(deep)) == deep


def test_flow_style_yaml_of_thousands_of_levels_is_read() -> None:
    assert encode(decode_yaml(b"{a: " * 9_999 + b"1" + b"}" * 9_999)) == b'{"a":' * 9_999 + b"1" + b"}" * 9_999


@pytest.mark.parametrize("sign", ["{", "["])
def test_nesting_is_limited_as_in_go(sign: str) -> None:
    deep = ('{"a":' if sign == "{" else "[") * 10_001 + "1" + ("}" if sign == "{" else "]") * 10_001
    with pytest.raises(StatusError) as caught:
        decode_json(deep.encode())
    assert caught.value.message.endswith(f"json parse error: invalid character '{sign}' exceeded max depth")


def test_fields_that_appear_twice_thousands_of_levels_deep_are_reported() -> None:
    duplicates: list[str] = []
    deep = b'{"a":' * 5_000 + b'[{"b":1,"b":2}]' + b"}" * 5_000

    value = decode_json(deep, duplicates)

    assert duplicates == [f'duplicate field "{"a." * 4_999}a[0].b"']
    assert encode(value) == deep.replace(b'"b":1,', b"")


def test_fields_that_appear_twice_are_reported_with_their_path() -> None:
    duplicates: list[str] = []
    value = decode_json(b'{"a":{"b":1,"b":2},"c":[{"d":1,"d":1}],"e":1,"e":2}', duplicates)
    assert value == {"a": {"b": 2}, "c": [{"d": 1}], "e": 2}
    assert duplicates == ['duplicate field "a.b"', 'duplicate field "c[0].d"', 'duplicate field "e"']


def test_keys_that_appear_twice_in_yaml_are_reported_with_their_line() -> None:
    duplicates: list[str] = []
    value = decode_yaml(b"a: 1\nb:\n  c: 1\n  c: 2\n", duplicates)
    assert value == {"a": 1, "b": {"c": 2}}
    assert duplicates == ['line 4: key "c" already set in map']


def test_json_that_is_sent_as_yaml_is_judged_as_yaml() -> None:
    duplicates: list[str] = []
    assert decode_yaml(b'{"a":1,"a":2}', duplicates) == {"a": 2}
    assert duplicates == ['line 1: key "a" already set in map']


def test_a_mistake_in_yaml_is_reported_with_gos_line() -> None:
    with pytest.raises(StatusError) as refused:
        decode_yaml(b"a: [", prefix="error decoding YAML: ")
    assert refused.value.message == (
        "error decoding YAML: error converting YAML to JSON: yaml: line 1: did not find expected node content"
    )
