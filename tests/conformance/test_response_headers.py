"""Headers that every response has."""

from __future__ import annotations

from datetime import timedelta
from email.utils import parsedate_to_datetime
from uuid import UUID

from tests.conformance.asking import Fetch


async def test_every_response_has_an_identifier_and_a_date(fetch: Fetch) -> None:
    found = [await fetch(path) for path in ("/version", "/api/v1/namespaces", "/nowhere", "/api/v1/pods?limit=x")]
    assert len({UUID(response.headers.get("Audit-Id")) for response in found}) == 4
    dates = [parsedate_to_datetime(response.headers.get("Date") or "") for response in found]
    assert max(dates) - min(dates) < timedelta(minutes=10)


async def test_the_identifier_that_a_client_sends_is_returned(fetch: Fetch) -> None:
    response = await fetch("/version", headers=[("Audit-ID", "its-own")])
    assert response.headers.get("Audit-Id") == "its-own"
