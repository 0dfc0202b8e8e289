from __future__ import annotations

import pytest
from operators.user import User, UserSpec
from operators.user.types import DEFAULT_EXPIRATION

from kubewright import Client, ControlPlane, Invalid, ObjectMeta
from kubewright.api.codec import from_json
from kubewright.testing import virtual


@virtual
async def test_a_user_needs_no_spec_and_is_pending_from_its_creation() -> None:
    async with ControlPlane.embedded(definitions=[User], controllers=[]) as plane, plane.client() as client:
        created = await client.create(from_json(User, {"metadata": {"name": "alice"}}))
        assert created.spec == UserSpec(csr_expiration_seconds=DEFAULT_EXPIRATION)
        assert (created.status.phase, created.status.conditions) == ("Pending", [])
        table = await client.table(User)
        assert [table.column(each) for each in ("Phase", "ExpirationSeconds")] == [["Pending"], [DEFAULT_EXPIRATION]]


@virtual
async def test_the_life_of_tokens_is_what_servers_accept() -> None:
    async with ControlPlane.embedded(definitions=[User], controllers=[]) as plane, plane.client() as client:
        for seconds in (0, 600, 2**31 - 1):
            await dry(client, seconds)
        for seconds in (-1, 1, 599):
            with pytest.raises(Invalid, match="must be at least 600 seconds, or 0 for the default"):
                await dry(client, seconds)
        with pytest.raises(Invalid, match="csrExpirationSeconds"):
            await dry(client, 2**31)


async def dry(client: Client, seconds: int) -> None:
    spec = UserSpec(csr_expiration_seconds=seconds)
    await client.create(User(metadata=ObjectMeta(name="alice"), spec=spec), dry_run=True)
