"""A token is in the Secret of its User, and nowhere else: not in logs at any level, events, status, metrics, reprs."""

from __future__ import annotations

import asyncio
import base64
import logging

import pytest
from operators.user import User, setup
from operators.user.context import UserContext
from operators.user.kubeconfig import KEY, public_config
from operators.user.steps import pipeline
from operators.user.tests.deploying import Site, vacant

from kubewright import Client, Manager, now
from kubewright.api import Object
from kubewright.api.authentication.v1 import TokenRequest
from kubewright.api.codec import encode
from kubewright.api.core.v1 import ConfigMap, Namespace, ServiceAccount
from kubewright.api.events.v1 import Event
from kubewright.api.rbac.v1 import Role, RoleBinding
from kubewright.client import MergePatch
from kubewright.testing import RecordedEvents, settled, virtual

KINDS: list[type[Object]] = [User, Event, Namespace, ServiceAccount, ConfigMap, Role, RoleBinding]


async def page(port: int, path: str) -> str:
    """What a server of the manager answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: it\r\nConnection: close\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    assert answer.startswith("HTTP/1.1 200"), answer
    return answer


@virtual
async def test_no_token_is_seen_anywhere_but_in_its_secret(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: list[str] = []
    mint = Client.token

    async def recorded(self: Client, *args: object, **options: object) -> TokenRequest:
        answer = await mint(self, *args, **options)  # type: ignore[arg-type]  # passed on as they are
        assert answer.status.token is not None
        tokens.append(answer.status.token)
        return answer

    monkeypatch.setattr(Client, "token", recorded)
    caplog.set_level(logging.NOTSET)
    seen: list[str] = []
    async with vacant() as (plane, admin, own):
        manager = Manager(own, webhook_address="0", metrics_address="127.0.0.1:0", debug_address="127.0.0.1:0")
        setup(manager)
        async with manager.running():
            # Every way in which writing a token can fail, each with an error that may quote what was sent.
            for code in (500, 422, 409, 403):
                plane.faults.fail(lambda target: (target.verb, target.resource) == ("patch", "secrets"), code=code)
            here = Site(plane, admin, own, manager)
            await here.create()
            await admin.patch(User, "alice", MergePatch({"spec": {"kubeConfigRotateAt": now().isoformat()}}))
            await asyncio.sleep(30)
            await settled(manager)
            seen.append(await page(manager.ports["metrics"], "/metrics"))
            for path in ("/debug/queues", "/debug/caches", "/debug/reconciles", "/debug/tasks"):
                seen.append(await page(manager.ports["debug"], path))
            secret = await here.secret()
            context = UserContext(await admin.get(User, "alice"), manager.client, RecordedEvents())
            context.config = public_config(own.config, "")
            await pipeline.run(context)
            config = await here.kubeconfig()
            seen += [repr(each) for each in (secret, context, vars(context), config, config.credentials, manager)]
        for kind in KINDS:
            seen += [encode(each).decode() for each in await admin.list(kind)]
    seen.append(caplog.text)
    assert len(tokens) >= 5, "the failed ones, and two that were written"
    encoded = secret.data[KEY]
    assert any(token in base64.b64decode(encoded).decode() for token in tokens)
    for text in seen:
        assert not any(token in text for token in tokens)
        assert encoded[-100:] not in text
        assert "eyJ" not in text, "the beginning of every token"
