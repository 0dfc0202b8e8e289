"""The server's words about an object that it refused are followed by what is wrong in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kubewright.api.core.v1 import ConfigMap, Pod, PodSpec
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client, MergePatch
from kubewright.client.errors import APIError, BadRequest, Invalid

if TYPE_CHECKING:
    from tests.client.conftest import ScriptedServer

OWNER = ConfigMap(metadata=ObjectMeta(name="settings", namespace="shop", uid="u-1"))


def pod(**metadata: Any) -> Pod:
    return Pod(metadata=ObjectMeta(name="web", namespace="shop", **metadata), spec=PodSpec(containers=[]))


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (pod(labels={"tier": 3}), "(Expected `str`, got `int` - at `$.metadata.labels[...]`)"),
        (pod(finalizers="example.com/x"), "(Expected `array`, got `str` - at `$.metadata.finalizers`)"),
        (pod(owner_references=[OWNER]), "write set_controller_reference(owner, obj), or owner_references=[owner.as_ow"),
    ],
)
async def test_what_does_not_fit_its_type_is_named(
    client: Client, server: ScriptedServer, refused: Pod, reason: str
) -> None:
    server.refuses(400, "BadRequest", "json: cannot unmarshal")
    with pytest.raises(BadRequest) as raised:
        await client.create(refused)
    assert str(raised.value).startswith("create Pod shop/web: json: cannot unmarshal (")
    assert reason in str(raised.value)


async def test_an_update_of_what_was_not_read_is_said_so(client: Client, server: ScriptedServer) -> None:
    server.refuses(422, "Invalid", "metadata.resourceVersion: Invalid value: 0: must be specified for an update")
    with pytest.raises(Invalid, match="an update is of an object that was read: read it and change that, or use apply"):
        await client.update(pod())


async def test_nothing_is_added_for_objects_that_fit_or_that_are_not_whole(
    client: Client, server: ScriptedServer
) -> None:
    async def refused(*arguments: Any) -> str:
        server.refuses(422, "Invalid", "no")
        with pytest.raises(APIError) as raised:
            await (client.create if len(arguments) == 1 else client.patch)(*arguments)
        return str(raised.value)

    assert await refused(pod()) == "create Pod shop/web: no"
    assert await refused(Pod, "web", MergePatch({"spec": {"containers": 3}})) == "patch Pod shop/web: no"
