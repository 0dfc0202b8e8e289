"""What is not admitted without service accounts. The rest is compared with the real server's admission."""

from __future__ import annotations

import asyncio

import pytest

from kubewright.api.codec import from_json
from kubewright.api.core.v1 import Pod, ServiceAccount
from kubewright.api.meta import ObjectMeta
from kubewright.client.errors import Forbidden
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.admission import pods as pod_admission

POD = from_json(Pod, {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "busybox"}]}})


async def test_a_pod_waits_a_moment_for_the_account_of_its_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_admission, "_ACCOUNT_PATIENCE", 30.0)
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        creating = asyncio.create_task(client.create(POD))
        await client.create(ServiceAccount(metadata=ObjectMeta(name="other")))
        assert not creating.done()
        await client.create(ServiceAccount(metadata=ObjectMeta(name="default")))
        assert (await asyncio.wait_for(creating, 60)).spec.service_account_name == "default"


async def test_a_pod_is_refused_when_the_account_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_admission, "_ACCOUNT_PATIENCE", 0.01)
    async with ControlPlane.embedded(controllers=[]) as plane, plane.client() as client:
        with pytest.raises(Forbidden) as refused:
            await client.create(POD)
    assert refused.value.status.message == (
        'pods "a" is forbidden: error looking up service account default/default: serviceaccount "default" not found'
    )
