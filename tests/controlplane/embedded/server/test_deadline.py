from __future__ import annotations

import pytest

from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.endpoints.request import Target, parse_query
from kubewright.controlplane.embedded.server.deadline import deadline, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("90s", 90.0), ("1h2m3.5s", 3723.5), ("-1.5m", -90.0), ("+.5s", 0.5), ("10ms", 0.01), ("1.h", 3600.0)],
)
def test_durations_are_read_as_go_reads_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(("timeout", "seconds"), [("", 60.0), ("5s", 5.0), ("2h", 60.0), ("0s", 60.0), ("-3s", 60.0)])
def test_a_request_takes_at_most_a_minute(timeout: str, seconds: float) -> None:
    assert deadline(Target("/x", "get"), parse_query(f"timeout={timeout}")) == seconds


def test_a_watch_has_its_own_timeout() -> None:
    assert deadline(Target("/x", "watch"), parse_query("timeout=nonsense")) == 60.0
    with pytest.raises(StatusError):
        deadline(Target("/x", "list"), parse_query("timeout=nonsense"))
