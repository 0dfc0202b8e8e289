from __future__ import annotations

import io

from kubewright.controlplane.binaries.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_file_gets_at_most_one_plain_line_for_each_tenth() -> None:
    output = io.StringIO()
    progress = Progress(output)

    progress.status("downloading")
    for number in range(1, 201):
        progress.step(number, 200, f"package {number}")
    progress.close()

    lines = output.getvalue().splitlines()
    assert lines == [f"kubewright: {number} of 200 packages compiled" for number in range(20, 201, 20)]


def test_a_terminal_gets_one_line_that_moves_and_disappears() -> None:
    output = Terminal()
    progress = Progress(output)

    progress.step(1, 2, "one")
    progress.step(2, 2, "two")
    progress.close()

    first, second, last = output.getvalue().split("\r\x1b[K")[1:]
    assert first == "[############............] 1/2 one"
    assert second == "[########################] 2/2 two"
    assert last == ""


def test_the_moving_line_never_wraps() -> None:
    output = Terminal()

    Progress(output).status("x" * 1000)

    assert len(output.getvalue().removeprefix("\r\x1b[K")) < 1000


def test_a_remark_stays_on_a_line_of_its_own() -> None:
    output = Terminal()
    progress = Progress(output)

    progress.status("downloading")
    progress.say("waiting")

    assert output.getvalue().endswith("\r\x1b[Kkubewright: waiting\n")
