from __future__ import annotations

import re
import struct
from collections.abc import Callable

import pytest

from kubewright.controlplane.embedded.protobuf.readers import message_with
from kubewright.controlplane.embedded.protobuf.wire import Malformed

WriteField = Callable[[int, bytes | str | int], bytes]


def test_zeros_are_shown_unless_json_leaves_them_out(field: WriteField) -> None:
    """`?` is Go's omitempty, which spares what is behind a pointer."""
    message = message_with("Example", ["1 shown string", "2 left string?", "3 pointer *string?", "4 number int32?"])

    assert message.read(field(1, "") + field(2, "") + field(3, "") + field(4, 0)) == {"shown": "", "pointer": ""}


def test_what_was_not_sent_is_shown_as_go_shows_it() -> None:
    scalars = ["1 s string", "2 i int32", "3 b bool", "4 p *string", "5 l []string", "6 m {}string", "7 y bytes"]
    special = ["8 t Time", "9 q Quantity", "10 e IntOrString", "11 raw RawExtension", "12 meta meta/v1.ObjectMeta"]
    message = message_with("Example", [*scalars, *special, "13 left string?"])

    assert message.read(b"") == (
        {"s": "", "i": 0, "b": False, "p": None, "l": None, "m": None, "y": None}
        | {"t": None, "q": "0", "e": 0, "raw": None, "meta": {}}
    )


def test_the_last_of_several_scalars_counts(field: WriteField) -> None:
    message = message_with("Example", ["1 name string?", "2 size int32?"])

    assert message.read(field(1, "a") + field(2, 5) + field(1, "b") + field(2, 0)) == {"name": "b"}


def test_several_of_one_message_are_its_parts(field: WriteField) -> None:
    message = message_with("Example", ["1 metadata meta/v1.ObjectMeta", "2 names []string"])
    name, labels = field(1, field(1, "a")), field(1, field(11, field(1, "tier") + field(2, "web")))

    assert message.read(name + field(2, "x") + labels + field(2, "y")) == {
        "metadata": {"name": "a", "labels": {"tier": "web"}},
        "names": ["x", "y"],
    }


def test_an_inlined_message_is_part_of_the_one_around_it(field: WriteField) -> None:
    message = message_with("Volume", ["1 name string", "2 :VolumeSource core/v1.VolumeSource"])

    assert message.read(field(1, "data") + field(2, field(2, b""))) == {"name": "data", "emptyDir": {}}


def test_numbers_in_lists_may_be_packed(field: WriteField) -> None:
    message = message_with("Example", ["1 ids []int64"])

    assert message.read(field(1, b"\x01\xac\x02") + field(1, -1)) == {"ids": [1, 300, -1]}


def test_numbers_are_cut_to_their_size(field: WriteField) -> None:
    message = message_with("Example", ["1 small int32", "2 large int64", "3 flag bool"])

    assert message.read(field(1, (1 << 32) + 5) + field(2, -(1 << 63)) + field(3, 1 << 40)) == {
        "small": 5,
        "large": -(1 << 63),
        "flag": True,
    }


@pytest.mark.parametrize(("number", "shown"), [(2.5, 2.5), (3.0, 3), (1e20, 10**20), (1e21, 1e21)])
def test_whole_floats_are_integers_as_in_the_json_of_go(number: float, shown: float) -> None:
    read = message_with("Example", ["1 limit *double?"]).read(b"\x09" + struct.pack("<d", number))

    assert repr(read) == repr({"limit": shown})


@pytest.mark.parametrize(("number", "named"), [(float("nan"), "NaN"), (float("inf"), "+Inf"), (float("-inf"), "-Inf")])
def test_floats_that_json_does_not_have_are_refused(number: float, named: str) -> None:
    message = message_with("Example", ["1 limit *double?"])

    with pytest.raises(Malformed, match=re.escape(f"json: unsupported value: {named}")):
        message.read(b"\x09" + struct.pack("<d", number))


def test_entries_of_maps_have_values_even_when_none_was_sent(field: WriteField) -> None:
    message = message_with("Example", ["1 data {}bytes", "2 extra {}authentication/v1.ExtraValue", "3 text {}string"])
    key = field(1, "key")

    assert message.read(field(1, key) + field(2, key) + field(3, b"")) == {
        "data": {"key": ""},
        "extra": {"key": []},
        "text": {"": ""},
    }


def test_unknown_fields_of_an_entry_are_skipped(field: WriteField) -> None:
    message = message_with("Example", ["1 text {}string"])

    assert message.read(field(1, field(1, "key") + field(3, 7) + field(2, "value"))) == {"text": {"key": "value"}}
    with pytest.raises(Malformed, match="proto: unexpected end of group"):
        message.read(field(1, b"\x0c"))


def test_a_document_is_json_of_any_type_and_null_when_it_is_empty(field: WriteField) -> None:
    message = message_with("Example", ["1 documents []RawExtension"])

    assert message.read(b"".join(field(1, field(1, raw)) for raw in ('{"a": 1}', '"text"', "null", ""))) == {
        "documents": [{"a": 1}, "text", None, None]
    }


def test_every_byte_that_is_not_utf8_is_replaced(field: WriteField) -> None:
    message = message_with("Example", ["1 text string"])

    assert message.read(field(1, b"a\xff\xe2\x82b")) == {"text": "a\ufffd\ufffd\ufffdb"}


def test_unknown_fields_of_every_type_are_skipped(field: WriteField) -> None:
    message = message_with("Example", ["1 name string"])
    group = b"\x9b\x06" + field(1, 5) + field(2, "x") + b"\x9c\x06"  # field 99: start, content, end
    fixed = b"\x99\x06" + bytes(8) + b"\x9d\x06" + bytes(4)

    assert message.read(field(99, 7) + field(98, "x") + group + fixed + field(1, "a")) == {"name": "a"}


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x08\x01", "proto: wrong wireType = 0 for field UID"),
        (b"\x00\x00", "proto: Example: illegal tag 0 (wire type 0)"),
        (b"\x0c", "proto: Example: wiretype end group for non-group"),
        (b"\x9f\x06", "proto: illegal wireType 7"),
        (b"\x0a\x05abc", "unexpected EOF"),
        (b"\x0a", "unexpected EOF"),
        (b"\x9a", "unexpected EOF"),
        (b"\x9b\x06\x08\x01", "unexpected EOF"),
        (b"\x99\x06abc", "unexpected EOF"),
        (b"\x0a" + b"\xff" * 11, "proto: integer overflow"),
        (b"\x0a" + b"\xff" * 9 + b"\x01", "proto: negative length found during unmarshaling"),
        (b"\x9a\x06" + b"\xff" * 9 + b"\x01", "proto: negative length found during unmarshaling"),
        (b"\x12\x04\x0a\x02no", "quantities must match the regular expression"),
        (b"\x1a\x02\x08\x07", "impossible IntOrString.Type"),
        (b"\x22\x04\x0a\x02{]", "json: error in a raw document"),
    ],
)
def test_malformed_messages_are_refused_with_gos_message(data: bytes, why: str) -> None:
    message = message_with(
        "Example", ["1 uid:UID string", "2 amount Quantity", "3 port IntOrString", "4 raw RawExtension"]
    )

    with pytest.raises(Malformed) as raised:
        message.read(data)

    assert str(raised.value).startswith(why)


@pytest.mark.parametrize(
    ("seconds", "nanos", "time", "micro_time"),
    [
        (1700000000, 123456789, "2023-11-14T22:13:20Z", "2023-11-14T22:13:20.123456Z"),
        (0, 0, "1970-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z"),
        (5, -5001, "1970-01-01T00:00:05Z", "1970-01-01T00:00:04.999995Z"),
        (1 << 40, 0, "36812-02-20T00:36:16Z", "36812-02-20T00:36:16.000000Z"),
        (-62135596800, 0, None, None),
        (-62135596801, 0, "0000-12-31T23:59:59Z", "0000-12-31T23:59:59.000000Z"),
        (-62167219201, 0, "-0001-12-31T23:59:59Z", "-0001-12-31T23:59:59.000000Z"),
    ],
)
def test_times_are_written_as_go_writes_them_in_any_year(
    seconds: int, nanos: int, time: str | None, micro_time: str | None, field: WriteField
) -> None:
    message = message_with("Example", ["1 time Time", "2 microTime MicroTime"])
    timestamp = field(1, seconds) + field(2, nanos)

    assert message.read(field(1, timestamp) + field(2, timestamp)) == {"time": time, "microTime": micro_time}
