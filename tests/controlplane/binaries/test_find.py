from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kubewright.controlplane import BinariesNotFound, BinariesUnusable
from kubewright.controlplane.binaries import cached_directory, find_binaries

NAMES = ["kube-apiserver", "kube-controller-manager", "kubectl", "etcd"]


def fill(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch(0o755)
    return folder


def test_assets_named_by_the_user_come_before_the_built_ones(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(cached_directory(), *NAMES)
    assets = fill(tmp_path / "assets", *NAMES)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))

    binaries = find_binaries()

    assert binaries.directory == assets
    assert [path.name for path in (binaries.kube_apiserver, binaries.kube_controller_manager)] == NAMES[:2]
    assert [path.name for path in (binaries.kubectl, binaries.etcd)] == NAMES[2:]


def test_without_assets_the_built_ones_are_found(cache: Path) -> None:
    folder = fill(cached_directory(), *NAMES)

    assert find_binaries().directory == folder
    assert folder.parent == cache


def test_the_folder_in_the_cache_names_the_version_and_the_platform(cache: Path) -> None:
    assert cached_directory().name.startswith(f"v1.36.4-{sys.platform}-")


def test_a_changed_recipe_has_another_folder(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = cached_directory()
    monkeypatch.setattr("kubewright.controlplane.binaries.recipe.linker_flags", lambda: "-s")

    assert cached_directory() != before


def test_an_empty_cache_variable_means_the_default(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "/home/jane")

    assert cached_directory().parent == Path("/home/jane/.cache/kubewright/control-plane")


def test_macos_has_its_own_cache_directory(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/Users/jane")

    assert cached_directory().parent == Path("/Users/jane/Library/Caches/kubewright/control-plane")


def test_nothing_found_names_the_remedies(cache: Path) -> None:
    with pytest.raises(BinariesNotFound) as caught:
        find_binaries()

    message = str(caught.value)
    assert str(cached_directory()) in message
    assert "build it with Go 1.26 or newer (python -m kubewright.controlplane.binaries)" in message
    assert "or set KUBEBUILDER_ASSETS to a folder with kube-apiserver, " in message


def test_an_incomplete_folder_in_the_cache_counts_as_nothing(cache: Path) -> None:
    fill(cached_directory(), *NAMES[:3])

    with pytest.raises(BinariesNotFound):
        find_binaries()


def test_a_program_missing_among_the_assets_is_named(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(cached_directory(), *NAMES)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(fill(tmp_path / "assets", "kube-apiserver", "kubectl", "etcd")))

    with pytest.raises(
        BinariesUnusable,
        match=rf"KUBEBUILDER_ASSETS is {tmp_path}/assets, but kube-controller-manager is missing there",
    ):
        find_binaries()


def test_the_assets_of_envtest_are_enough_without_the_controllers(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = fill(tmp_path / "assets", "kube-apiserver", "kubectl", "etcd")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))

    assert find_binaries(controller_manager=False).directory == assets


def test_a_program_that_cannot_be_executed_is_named(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = fill(tmp_path / "assets", *NAMES)
    (assets / "etcd").chmod(0o644)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))

    with pytest.raises(BinariesUnusable, match="but etcd is not executable there"):
        find_binaries()
