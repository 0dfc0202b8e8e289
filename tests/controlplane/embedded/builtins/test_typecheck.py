from __future__ import annotations

from typing import cast

import msgspec
import pytest
from tools.record_answers import answers, questions

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import copied_object, mapping
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.builtins.registry import built_in_resources
from kubewright.controlplane.embedded.builtins.typecheck import empty_field, normalizer

RESOURCES = {f"{resource.gvk.api_version} {resource.gvk.kind}": resource for resource in built_in_resources()}


def decoded(go_type: str, obj: JSONObject) -> JSONObject:
    normalizer(go_type)(obj)
    return obj


def test_unknown_fields_and_nulls_are_dropped() -> None:
    assert decoded("core/v1#ConfigMap", {"metadata": {"name": "a", "odd": 1}, "data": None, "odd": {}}) == {
        "metadata": {"name": "a"}
    }


def test_zeros_go_or_stay_as_the_tag_of_their_field_says() -> None:
    lease = decoded("coordination/v1#Lease", {"spec": {"holderIdentity": "", "leaseTransitions": 0}})
    variable = decoded("core/v1#EnvVar", {"name": "", "value": ""})

    assert lease["spec"] == {"holderIdentity": "", "leaseTransitions": 0}
    assert variable == {"name": ""}


def test_lists_that_go_always_writes_are_null_when_empty() -> None:
    assert decoded("rbac/v1#Role", {"rules": []}) == {"metadata": {}, "rules": None}
    assert decoded("rbac/v1#Role", {}) == {"metadata": {}, "rules": None}


def test_lists_of_definitions_stay_empty_because_they_are_stored_as_json() -> None:
    definition = decoded("apiextensions/v1#CustomResourceDefinition", {"status": {"conditions": []}})

    assert mapping(definition, "status")["conditions"] == []


def test_the_first_value_that_does_not_fit_is_named_with_its_struct_and_path() -> None:
    with pytest.raises(StatusError) as refused:
        decoded("core/v1#Pod", {"spec": {"volumes": [{"name": "a"}, {"name": "b", "secret": {"optional": "no"}}]}})

    assert refused.value.code == 400
    assert refused.value.message == (
        'Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field '
        "SecretVolumeSource.spec.volumes.VolumeSource.secret.optional of type bool"
    )


def test_json_that_is_no_object_is_refused() -> None:
    with pytest.raises(StatusError, match=r"cannot unmarshal number into Go struct field ConfigMap\.metadata of type"):
        decoded("core/v1#ConfigMap", {"metadata": 1})


def test_an_object_that_was_refused_is_left_as_it_was() -> None:
    obj: JSONObject = {"metadata": {"name": "a"}, "data": {"a": 1}, "odd": 1}

    with pytest.raises(StatusError):
        decoded("core/v1#ConfigMap", obj)

    assert obj == {"metadata": {"name": "a"}, "data": {"a": 1}, "odd": 1}


@pytest.mark.parametrize("resource", RESOURCES.values(), ids=list(RESOURCES))
def test_every_served_kind_can_be_decoded(resource: object) -> None:
    kinds = [name for name, served in RESOURCES.items() if served is resource]
    obj: JSONObject = {}

    RESOURCES[kinds[0]].strategy.default(obj)

    assert "metadata" in obj


def test_what_kube_apiserver_sent_is_not_changed_by_decoding_it_again() -> None:
    recorded = answers()
    for question in questions():
        answer = recorded[question.title]
        assert isinstance(answer, dict)
        # Refusals aside; times that were left out of the records cannot be read.
        if "code" in answer or "NOW" in str(answer):
            continue
        again = copied_object(answer)
        RESOURCES[f"{answer['apiVersion']} {answer['kind']}"].strategy.default(again)
        assert again == answer, question.title


def test_an_empty_status_is_what_go_writes_for_one() -> None:
    empty = empty_field("apps/v1#DaemonSet", "status")

    assert empty is not None
    assert empty() == {
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }
    assert empty_field("core/v1#ConfigMap", "status") is None


@pytest.mark.parametrize(("deep", "found"), [(b'{"a":{}}', "object"), (b"[[]]", "array")])
def test_an_object_that_is_too_deep_is_refused_as_such(deep: bytes, found: str) -> None:
    with pytest.raises(
        StatusError, match=f"json: cannot unmarshal {found} into Go struct field ConfigMap.data of type"
    ):
        normalizer("core/v1#ConfigMap")(cast(JSONObject, {"data": {"a": msgspec.Raw(deep)}}))
