from __future__ import annotations

from collections.abc import Callable

import pytest

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object
from kubewright.controlplane.embedded.apimachinery.status import StatusError

Create = Callable[[JSONObject], JSONObject]
Update = Callable[[JSONObject, JSONObject], JSONObject]
SECRET: JSONObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"a": "eA=="}}


def test_an_immutable_object_stays_immutable_and_unchanged(create: Create, update: Update) -> None:
    stored = create({**SECRET, "immutable": True})
    changed = copied_object(stored)
    changed.update(immutable=False, data={"a": "eQ=="})

    with pytest.raises(StatusError) as refused:
        update(stored, changed)

    assert refused.value.message == (
        'Secret "a" is invalid: [immutable: Forbidden: field is immutable when `immutable` is set, '
        "data: Forbidden: field is immutable when `immutable` is set]"
    )
    assert "eQ==" not in str(refused.value.body())


def test_metadata_of_an_immutable_object_may_change(create: Create, update: Update) -> None:
    stored = create({**SECRET, "immutable": True})
    changed = copied_object(stored)
    changed["metadata"] = {"name": "a", "namespace": "default", "labels": {"a": "b"}}

    assert update(stored, changed)["data"] == {"a": "eA=="}


def test_a_secret_is_limited_to_a_mebibyte_of_decoded_data(create: Create) -> None:
    create({**SECRET, "data": {"a": "eHh4" * (1024 * 1024 // 3)}})

    with pytest.raises(StatusError, match="data: Too long: may not be more than 1048576 bytes"):
        create({**SECRET, "data": {"a": "eHh4" * (1024 * 1024 // 3 + 1)}})


def test_a_bad_docker_config_is_refused_without_being_shown(create: Create) -> None:
    secret: JSONObject = {**SECRET, "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "W10="}}

    with pytest.raises(StatusError) as refused:
        create(secret)

    assert "<secret contents redacted>" in refused.value.message
    assert "json: cannot unmarshal array into Go value of type map[string]interface {}" in refused.value.message
