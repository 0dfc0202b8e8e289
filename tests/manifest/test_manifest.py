from __future__ import annotations

import subprocess
import sys

import pytest

import kubewright.manifest


@pytest.mark.parametrize("name", kubewright.manifest.__all__)
def test_everything_exported_exists(name: str) -> None:
    assert getattr(kubewright.manifest, name).__name__ == name


def test_reading_yaml_imports_no_renderer() -> None:
    """A kubeconfig is read by every program, a definition is rendered by few."""
    program = "import sys, kubewright.manifest.yaml_reader; sys.exit('kubewright.manifest.crd' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)  # a program of our own


def test_a_name_that_it_does_not_have_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"'kubewright\.manifest' has no attribute 'crd_yml'"):
        kubewright.manifest.crd_yml  # type: ignore[attr-defined]  # noqa: B018
