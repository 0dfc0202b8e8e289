"""Which object a request means: one that is named by its uid is not replaced by another of the same name."""

from __future__ import annotations

from tests.conformance.asking import Ask

APPLY = "application/apply-patch+yaml"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/NAMESPACE/leases"


async def test_an_apply_to_an_absent_uid_does_not_create(ask: Ask) -> None:
    path = "/api/v1/namespaces/NAMESPACE/configmaps/a"
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "x"}}
    refused = await ask("PATCH", f"{path}?fieldManager=tests", body, APPLY)

    assert refused.refusal == (
        409,
        "Conflict",
        'Operation cannot be fulfilled on configmaps "a": '
        "uid mismatch: the provided object specified uid x, and no existing object was found",
    )
    assert (await ask("GET", path)).code == 404


async def test_a_put_with_an_absent_uid_does_not_create(ask: Ask, namespace: str) -> None:
    refused = await ask("PUT", f"{LEASES}/a", {"metadata": {"name": "a", "uid": "x"}})

    assert refused.refusal == (
        409,
        "Conflict",
        'Operation cannot be fulfilled on leases.coordination.k8s.io "a": StorageError: invalid object, Code: 4, '
        f"Key: /registry/leases/{namespace}/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
        "UID in precondition: x, UID in object meta: ",
    )
    assert (await ask("GET", f"{LEASES}/a")).code == 404
