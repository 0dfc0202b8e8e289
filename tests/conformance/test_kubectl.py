"""kubectl does the same on the embedded control plane as on the real one: see `kubectl_script`.

`python -m tools.kubectl_versions` compares more, and with other versions of kubectl.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.conformance.kubectl_script import BOOK, both, differences

from kubewright.controlplane import ControlPlane
from kubewright.controlplane.binaries import find_binaries


def test_every_step_has_its_manifest() -> None:
    """Those of the long scripts too, which only the tool runs."""
    for script in (*BOOK.scripts, *BOOK.long_scripts):
        for step in BOOK.script(script):
            assert bool(BOOK.manifest(step)) == bool(step.input)


@pytest.mark.parametrize("script", BOOK.scripts)
async def test_kubectl_prints_the_same_on_both(
    embedded_control_plane: ControlPlane, real_control_plane: ControlPlane, script: str, tmp_path: Path
) -> None:
    planes = embedded_control_plane, real_control_plane
    program = find_binaries(controller_manager=False).kubectl
    async with both(program, planes, f"kubectl-{script}", tmp_path) as pair:
        found = await differences(script, pair)

    assert not found, f"{len(found)} of {len(BOOK.scripts[script])} differ:\n" + "\n".join(found)


@pytest.mark.parametrize("script", ["objects", "custom"])
async def test_another_kubectl_prints_the_same_on_both(
    embedded_control_plane: ControlPlane,
    real_control_plane: ControlPlane,
    script: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Older clients ask in other ways. Whichever kubectl is installed is taken."""
    program = shutil.which("kubectl")
    if program is None:
        reason = "there is no kubectl on the PATH: the embedded control plane was NOT compared with another kubectl"
        with capsys.disabled():
            print(f"\n{reason}")  # noqa: T201  # a skip alone is easily overlooked
        pytest.skip(reason)
    planes = embedded_control_plane, real_control_plane
    async with both(program, planes, f"other-kubectl-{script}", tmp_path) as pair:
        found = await differences(script, pair)

    assert not found, f"{len(found)} of {len(BOOK.scripts[script])} differ:\n" + "\n".join(found)
