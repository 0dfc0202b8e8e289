from __future__ import annotations

from kubewright.controlplane.embedded.apimachinery.remembered import remembered


def test_short_texts_are_remembered_and_long_ones_are_not() -> None:
    calls: list[int] = []

    @remembered(2)
    def length(text: str) -> int:
        calls.append(len(text))
        return len(text)

    for text in ("ab", "ab", "x" * 2000, "x" * 2000):
        assert length(text) == len(text)
    assert calls == [2, 2000, 2000]
