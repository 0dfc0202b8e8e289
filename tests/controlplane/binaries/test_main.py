from __future__ import annotations

from pathlib import Path

import pytest

from kubewright.controlplane.binaries import cached_directory
from kubewright.controlplane.binaries.__main__ import main


@pytest.mark.usefixtures("go")
def test_it_prints_the_folder_and_only_that_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0

    assert capsys.readouterr().out == f"{cached_directory()}\n"


@pytest.mark.usefixtures("no_go")
def test_without_go_it_fails_and_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1

    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("kubewright: Go is not installed: install Go 1.26 or newer")


@pytest.mark.usefixtures("no_go")
def test_if_possible_reports_the_reason_in_one_line_and_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--if-possible"]) == 0

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("kubewright: no real control plane, tests that need it will not run: Go is not installed")


@pytest.mark.usefixtures("no_go")
def test_if_possible_fails_where_the_real_one_is_required(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEWRIGHT_REQUIRE_REAL", "1")

    assert main(["--if-possible"]) == 1
    assert capsys.readouterr().err.startswith("kubewright: Go is not installed")


def test_incomplete_assets_are_an_error_and_not_built_over(
    go: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    assert main([]) == 1

    assert "but kube-apiserver is missing there" in capsys.readouterr().err
    assert not cached_directory().exists()


def test_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])

    assert ended.value.code == 0
    assert "export KUBEBUILDER_ASSETS=$(python -m kubewright.controlplane.binaries)" in capsys.readouterr().out
