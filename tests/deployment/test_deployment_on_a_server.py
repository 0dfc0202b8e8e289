"""Servers accept what is deployed, with strict validation, and its pods in a namespace that is restricted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.deployment.ferries import ferries
from tests.deployment.shipped import OPERATORS

from kubewright import Client, Manager
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Namespace, Pod, ServiceAccount
from kubewright.api.dynamic import Dynamic
from kubewright.api.meta import ObjectMeta
from kubewright.client.errors import Forbidden
from kubewright.deployment import Operator, install_yaml, objects_of, with_setup
from kubewright.deployment.workload import deployment
from kubewright.manifest.documents import documents


async def test_a_server_accepts_every_object_as_it_is_and_as_it_is_written(admin: Client, namespace: str) -> None:
    operator = ferries(namespace)
    for obj in objects_of(operator):
        if isinstance(obj, Namespace):
            await admin.apply(obj, force=True, field_validation="Strict")
        else:
            await admin.create(obj, dry_run=True, field_validation="Strict")
    for document in documents(install_yaml(operator), "install.yaml"):
        assert isinstance(document.value, dict)
        kind = Dynamic.of(str(document.value["apiVersion"]), str(document.value["kind"]))
        await admin.apply(from_json(kind, document.value), dry_run=True, force=True, field_validation="Strict")


async def test_pods_are_admitted_where_only_restricted_ones_are(admin: Client, namespace: str) -> None:
    operator = ferries(namespace)
    for obj in objects_of(operator):
        if isinstance(obj, Namespace | ServiceAccount):
            await admin.apply(obj, force=True)
    template = deployment(operator).spec.template
    pod = Pod(metadata=ObjectMeta(name="ferries", namespace=namespace), spec=template.spec)
    await admin.create(pod, dry_run=True, field_validation="Strict")
    assert pod.spec.security_context is not None
    pod.spec.security_context.run_as_non_root = None
    with pytest.raises(Forbidden, match="restricted"):
        await admin.create(pod, dry_run=True)


@pytest.mark.parametrize("setup", OPERATORS.values(), ids=OPERATORS)
async def test_a_server_accepts_what_is_deployed_of_the_operators_here(
    setup: Callable[[Manager], None], admin: Client, namespace: str
) -> None:
    operator = await with_setup(Operator(name="it", image="it:1", namespace=namespace), setup)
    for obj in objects_of(operator):
        # Other tests may have installed the kinds.
        await admin.apply(obj, dry_run=not isinstance(obj, Namespace), force=True, field_validation="Strict")
