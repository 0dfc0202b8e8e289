from __future__ import annotations

import json
import re

import pytest

from kubewright.controlplane import ControlPlane, ControlPlaneError
from kubewright.controlplane.https import request
from kubewright.testing.namespaces import create_namespace, delete_namespace, unique_name


@pytest.mark.parametrize("test", ["test_x", "test_x[Ünïcode/42]", "ü", "test_" + "long" * 50])
def test_a_name_is_unique_and_one_that_kubernetes_takes(test: str) -> None:
    name = unique_name(test)

    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name)
    assert name != unique_name(test)


def test_a_name_that_is_taken_is_an_error_with_the_words_of_the_server(
    real_control_plane: ControlPlane, namespace: str
) -> None:
    with pytest.raises(ControlPlaneError, match=rf'cannot create the namespace "{namespace}": 409 .*already exists'):
        create_namespace(real_control_plane, namespace)


def test_a_deleted_namespace_is_going_or_gone_at_once(real_control_plane: ControlPlane) -> None:
    name = unique_name("deleted")
    create_namespace(real_control_plane, name)

    delete_namespace(real_control_plane, name)

    context = real_control_plane.admin.ssl_context()
    status, body = request(real_control_plane.url, context, "GET", f"/api/v1/namespaces/{name}")
    assert status == 404 or json.loads(body)["status"]["phase"] == "Terminating"
