from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.tables.policy import PRINTERS

ADMISSION = "admissionregistration.k8s.io"


def cells(group: str, plural: str, obj: JSONObject) -> list[JSONValue]:
    return PRINTERS[group, plural].cells({"metadata": {"name": "n"}, **obj}, 0.0)


def test_subjects_of_a_binding_are_shown_by_kind() -> None:
    subjects: list[JSONValue] = [
        {"kind": "User", "name": "u"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "ns"},
        {"kind": "User", "name": "v"},
        {"kind": "Group", "name": "g"},
    ]
    obj: JSONObject = {"roleRef": {"kind": "Role", "name": "r"}, "subjects": subjects}
    assert cells("rbac.authorization.k8s.io", "rolebindings", obj)[1:] == [
        "Role/r",
        "<unknown>",
        "u, v",
        "g",
        "ns/s",
    ]


def test_a_signing_request_reports_how_far_it_got() -> None:
    def condition(certificate: str, *types: str) -> JSONValue:
        conditions: list[JSONValue] = [{"type": type_} for type_ in types]
        obj: JSONObject = {"status": {"conditions": conditions, "certificate": certificate}}
        return cells("certificates.k8s.io", "certificatesigningrequests", obj)[-1]

    assert condition("") == "Pending"
    assert condition("eA==", "Approved") == "Approved,Issued"
    assert condition("", "Approved", "Failed") == "Approved,Failed"
    assert condition("", "Approved", "Denied") == "Denied"


def test_limits_of_a_quota_have_a_column_of_their_own() -> None:
    status: JSONObject = {"hard": {"pods": "5", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "3"}}
    assert cells("", "resourcequotas", {"status": status})[1:3] == ["cpu: 0/1, pods: 3/5", "limits.cpu: 0/2"]


def test_parameters_of_a_policy_are_named_or_selected() -> None:
    def parameters(reference: JSONObject) -> JSONValue:
        return cells(ADMISSION, "validatingadmissionpolicybindings", {"spec": {"paramRef": reference}})[2]

    assert parameters({}) == "<unset>"
    assert parameters({"name": "c"}) == "*/c"
    assert parameters({"name": "c", "namespace": "ns"}) == "ns/c"
    assert parameters({"selector": {"matchLabels": {"a": "b"}}}) == (
        "&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},}"
    )


def test_a_level_without_queues_shows_none() -> None:
    limited: JSONObject = {"type": "Limited", "limited": {"nominalConcurrencyShares": 0}}
    found = cells("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", {"spec": limited})
    assert found[1:6] == ["Limited", 0, "<none>", "<none>", "<none>"]
