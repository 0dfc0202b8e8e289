import pytest

from kubewright.controlplane.embedded.decoding import decode_body, decode_json, decode_yaml
from kubewright.controlplane.embedded.document import JSONObject
from kubewright.controlplane.embedded.status import StatusError


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


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b'"\xff"', b"NaN", b"[" * 100_000])
def test_what_is_no_json_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(StatusError) as caught:
        decode_json(body)
    assert caught.value.code == 400


@pytest.mark.parametrize("body", [b"a: [", b"\xff", b"a: &a [*a]", b"!!python/object:os.system {}", b"[" * 5000])
def test_what_is_no_yaml_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(StatusError) as caught:
        decode_yaml(body)
    assert caught.value.code == 400


def test_nesting_is_limited() -> None:
    deep = b'{"a":' * 600 + b"1" + b"}" * 600
    with pytest.raises(StatusError, match="max depth"):
        decode_json(deep)


def test_fields_that_appear_twice_are_reported_with_their_path() -> None:
    duplicates: list[str] = []
    value = decode_json(b'{"a":{"b":1,"b":2},"c":[{"d":1,"d":1}],"e":1,"e":2}', duplicates)
    assert value == {"a": {"b": 2}, "c": [{"d": 1}], "e": 2}
    assert duplicates == ["e", "a.b", "c[0].d"]
