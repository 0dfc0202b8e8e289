import ast
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec
import pytest

import kubewright
from kubewright.api.time import MicroTime, Time, micro_now, now, refuse_naive_times


class Lease(msgspec.Struct, rename="camel"):
    created_at: Time | None = None
    renew_time: MicroTime | None = None
    history: list[dict[str, Time]] = []
    note: str = ""


def encode_hook(value: object) -> object:
    assert isinstance(value, MicroTime)
    return value.to_json()


def decode_hook(cls: type, value: object) -> object:
    assert cls is MicroTime
    return MicroTime.from_json(value)


def encode(value: object) -> bytes:
    return msgspec.json.encode(value, enc_hook=encode_hook)


def decode(data: bytes) -> Lease:
    return msgspec.json.decode(data, type=Lease, dec_hook=decode_hook)


def test_time_is_written_as_the_server_writes_it() -> None:
    assert encode(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)) == b'"2026-01-02T03:04:05Z"'


def test_time_keeps_its_offset() -> None:
    data = b'"2026-01-02T03:04:05+02:00"'
    assert encode(msgspec.json.decode(data, type=Time)) == data


def test_time_without_zone_is_refused_when_decoding() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"timezone component - at `\$\.createdAt`"):
        decode(b'{"createdAt":"2026-01-02T03:04:05"}')


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (MicroTime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00.000000Z"),
        (MicroTime(2026, 1, 2, 3, 4, 5, 60, tzinfo=UTC), "2026-01-02T03:04:05.000060Z"),
        (MicroTime(2026, 7, 2, 3, tzinfo=ZoneInfo("Europe/Berlin")), "2026-07-02T01:00:00.000000Z"),
        (MicroTime(2026, 1, 2, tzinfo=timezone(timedelta(minutes=53, seconds=28))), "2026-01-01T23:06:32.000000Z"),
        (MicroTime(7, 1, 2, tzinfo=UTC), "0007-01-02T00:00:00.000000Z"),
    ],
)
def test_micro_time_is_written_with_six_digits_in_utc(value: MicroTime, text: str) -> None:
    """The server refuses any other number of digits."""
    assert value.to_json() == text
    assert encode(Lease(renew_time=value)).find(f'"renewTime":"{text}"'.encode()) > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-02T03:04:05.000060Z", datetime(2026, 1, 2, 3, 4, 5, 60, UTC)),
        ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, 0, UTC)),
        ("2026-01-02T03:04:05.5+02:00", datetime(2026, 1, 2, 1, 4, 5, 500000, UTC)),
    ],
)
def test_micro_time_is_read_with_any_fraction(text: str, expected: datetime) -> None:
    renewed = decode(f'{{"renewTime":"{text}"}}'.encode()).renew_time
    assert isinstance(renewed, MicroTime)
    assert renewed == expected


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("yesterday", "'yesterday'"),
        ("2026-01-02T03:04:05", "'2026"),
        ("0001-01-01T00:00:00+02:00", "'0001"),
        (5, "int"),
        (None, "NoneType"),
    ],
)
def test_an_invalid_micro_time_is_refused(value: object, found: str) -> None:
    with pytest.raises(ValueError, match=f'expected a time such as "2026-01-01T00:00:00.000000Z", found {found}'):
        MicroTime.from_json(value)


def test_error_in_a_decoded_object_names_the_field() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"found 'soon' - at `\$\.renewTime`"):
        decode(b'{"renewTime":"soon"}')


def test_micro_time_stays_one_in_arithmetic() -> None:
    later = MicroTime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=15)
    assert isinstance(later, MicroTime)
    assert later.to_json() == "2026-01-02T00:00:15.000000Z"


def test_micro_time_of_a_datetime_is_the_same_point_in_time() -> None:
    ambiguous = datetime(2026, 10, 25, 2, 30, 0, 7, ZoneInfo("Europe/Berlin"), fold=1)
    assert MicroTime.from_datetime(ambiguous).to_json() == "2026-10-25T01:30:00.000007Z"


def test_micro_time_without_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="2026-01-02T00:00:00 has no time zone: use"):
        MicroTime.from_datetime(datetime(2026, 1, 2))
    with pytest.raises(ValueError, match="has no time zone"):
        encode(MicroTime(2026, 1, 2))


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (Lease(created_at=datetime(2026, 1, 2)), "createdAt: "),
        (Lease(created_at=datetime(2026, 1, 2, 3, 4, 5, 6)), "createdAt: "),
        (Lease(history=[{}, {"restarted": datetime(2026, 1, 2)}]), r"history\[1\].restarted: "),
        ({"spec": {"notBefore": datetime(2026, 1, 2)}}, "spec.notBefore: "),
        (datetime(2026, 1, 2), "the time "),
    ],
)
def test_time_without_zone_is_refused_when_encoding(value: object, path: str) -> None:
    with pytest.raises(ValueError, match=f"^{path}.*has no time zone"):
        refuse_naive_times(value, encode(value), encode_hook)


def test_times_with_zone_and_texts_like_times_pass() -> None:
    lease = Lease(now(), micro_now(), [{"restarted": now()}], note="2026-01-02T00:00:00")
    refuse_naive_times(lease, encode(lease), encode_hook)
    json = {"note": msgspec.Raw(b'"2026-01-02T00:00:00"'), "at": now()}
    refuse_naive_times(json, encode(json), encode_hook)


def test_now_has_whole_seconds() -> None:
    """The server would cut a fraction off, and the object read back would differ from the one written."""
    assert now().microsecond == 0
    assert decode(encode(Lease(created_at=(present := now())))).created_at == present


@pytest.mark.parametrize("function", [now, micro_now])
def test_now_is_in_utc(function: Callable[[], datetime]) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    present = function()
    assert present.tzinfo is UTC
    assert before < present <= datetime.now(UTC)


def test_nothing_but_the_one_clock_reads_the_time_of_day() -> None:
    """What is stamped otherwise stands still in virtual time. TLS checks certificates by the machine's clock."""
    sources = Path(kubewright.__file__).parent
    readers = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time", "time.time_ns"}
    found = {
        str(path.relative_to(sources))
        for path in sources.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in readers
    }

    assert found == {"api/time.py", "controlplane/certificates.py"}
