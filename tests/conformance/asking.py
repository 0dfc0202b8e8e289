"""Requests as they are sent, byte for byte: the forms of the fixtures `fetch` and `ask`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, cast

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.client.http.transport import Response
from kubewright.controlplane.embedded.apimachinery.document import text

Fetch = Callable[..., Awaitable[Response]]


def decoded(response: Response) -> JSONObject:
    return cast(JSONObject, msgspec.json.decode(response.body))


class Answer(NamedTuple):
    """What came back for a raw request."""

    code: int
    body: JSONObject
    warnings: list[str]

    @property
    def refusal(self) -> tuple[int, str, str]:
        """The code, reason and message of a failure."""
        return self.code, text(self.body, "reason"), text(self.body, "message")


Ask = Callable[..., Awaitable[Answer]]
AskAs = Callable[..., Ask]
Grant = Callable[..., Awaitable[None]]
