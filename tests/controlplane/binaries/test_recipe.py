from __future__ import annotations

import re

from kubewright.controlplane.binaries import recipe


def test_the_versions_are_those_of_the_go_module() -> None:
    assert recipe.kubernetes_version() == "v1.36.4"
    assert recipe.etcd_version() == "v3.6.8"
    assert recipe.go_version() == (1, 26)


def test_the_go_module_requires_everything_that_is_built() -> None:
    imported = re.findall(r'_ "(.+)"', (recipe.MODULE_DIRECTORY / "binaries.go").read_text())

    assert sorted(imported) == sorted(recipe.PROGRAMS.values())


def test_the_programs_report_the_version_as_a_release_does() -> None:
    flags = recipe.linker_flags()

    assert "-X k8s.io/component-base/version.gitVersion=v1.36.4" in flags
    assert "-X k8s.io/component-base/version.gitMinor=36" in flags
