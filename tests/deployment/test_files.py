from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tests.deployment.ferries import Ferry, FerrySpec, ferries
from tests.deployment.shipped import OPERATORS

from kubewright import Manager
from kubewright.api import JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.controlplane.binaries import find_binaries
from kubewright.deployment import Operator, files_of, install_yaml, with_setup
from kubewright.manifest import ManifestError
from kubewright.manifest.documents import documents


def test_files_are_those_of_kubebuilder() -> None:
    assert [*files_of(ferries())] == [
        "config/crd/bases/ferries.deployment.test_anchorages.yaml",
        "config/crd/bases/ferries.deployment.test_ferries.yaml",
        "config/crd/kustomization.yaml",
        "config/default/kustomization.yaml",
        "config/manager/kustomization.yaml",
        "config/manager/manager.yaml",
        "config/manager/metrics_service.yaml",
        "config/manager/pod_disruption_budget.yaml",
        "config/network-policy/kustomization.yaml",
        "config/network-policy/network_policy.yaml",
        "config/objects/configmap_timetable.yaml",
        "config/objects/kustomization.yaml",
        "config/objects/validatingadmissionpolicy_harbour.yaml",
        "config/objects/validatingadmissionpolicybinding_harbour.yaml",
        "config/rbac/anchorage_admin_role.yaml",
        "config/rbac/anchorage_editor_role.yaml",
        "config/rbac/anchorage_viewer_role.yaml",
        "config/rbac/ferry_admin_role.yaml",
        "config/rbac/ferry_editor_role.yaml",
        "config/rbac/ferry_viewer_role.yaml",
        "config/rbac/kustomization.yaml",
        "config/rbac/metrics_reader_role.yaml",
        "config/rbac/role.yaml",
        "config/rbac/role_binding.yaml",
        "config/rbac/service_account.yaml",
        "config/samples/ferries_v1_anchorage.yaml",
        "config/samples/ferries_v1_ferry.yaml",
        "config/samples/kustomization.yaml",
        "config/webhook/kustomization.yaml",
        "config/webhook/manifests.yaml",
        "config/webhook/service.yaml",
        "dist/install.yaml",
    ]


@pytest.mark.usefixtures("real_control_plane")  # for its kubectl
def test_kustomize_makes_the_objects_of_the_one_manifest_in_the_same_order(tmp_path: Path) -> None:
    write(ferries(), tmp_path)
    assert kustomized(tmp_path, "default") == [
        each.value for each in documents(install_yaml(ferries()), "install.yaml")
    ]
    assert len(kustomized(tmp_path, "samples")) == 2


@pytest.mark.usefixtures("real_control_plane")  # for its kubectl
@pytest.mark.parametrize("setup", OPERATORS.values(), ids=OPERATORS)
async def test_kustomize_builds_the_files_of_the_operators_here(
    setup: Callable[[Manager], None], tmp_path: Path
) -> None:
    operator = await with_setup(Operator(name="it", image="it:1"), setup)
    write(operator, tmp_path)
    assert kustomized(tmp_path, "default") == [each.value for each in documents(install_yaml(operator), "install.yaml")]


def write(operator: Operator, directory: Path) -> None:
    for path, content in files_of(operator).items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


def kustomized(directory: Path, name: str) -> list[JSONValue]:
    command = [str(find_binaries().kubectl), "kustomize", str(directory / "config" / name)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert answer.stderr == ""
    return [each.value for each in documents(answer.stdout, "kustomize")]


def test_the_same_operator_gives_the_same_bytes() -> None:
    operator = ferries()
    turned = msgspec.structs.replace(operator, kinds=operator.kinds[::-1], roles=operator.roles[::-1])
    assert files_of(operator) == files_of(ferries()) == files_of(turned)


def test_manifests_have_neither_a_status_nor_an_empty_spec() -> None:
    written = [each.value for file, text in files_of(ferries()).items() for each in documents(text, file)]
    assert all(isinstance(each, dict) and "status" not in each and each.get("spec") != {} for each in written)


def test_samples_of_one_kind_have_their_names_in_those_of_their_files() -> None:
    two = [Ferry(metadata=ObjectMeta(name=name), spec=FerrySpec()) for name in ("big", "small")]
    files = files_of(msgspec.structs.replace(ferries(), samples=two))
    assert {"config/samples/ferries_v1_ferry_big.yaml", "config/samples/ferries_v1_ferry_small.yaml"} <= {*files}
    with pytest.raises(ManifestError, match="two samples are the Ferry"):
        files_of(msgspec.structs.replace(ferries(), samples=[two[0], two[0]]))
    elsewhere = Ferry(metadata=ObjectMeta(name="../../../small"), spec=FerrySpec())
    with pytest.raises(ManifestError, match=r"a sample is the Ferry .*: neither kinds nor names have a slash"):
        files_of(msgspec.structs.replace(ferries(), samples=[two[0], elsewhere]))
