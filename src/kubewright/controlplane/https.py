"""One HTTPS request at a time, blocking: enough to probe whether a starting server is ready.

Programs use `kubewright.client`, which this package must not depend on.
"""

from __future__ import annotations

import http.client
import ssl
from urllib.parse import urlsplit


def request(
    url: str, context: ssl.SSLContext, method: str, path: str, body: bytes | None = None, *, timeout: float = 10.0
) -> tuple[int, bytes]:
    """The status code and the body of the response. Raises OSError or http.client.HTTPException when there is none."""
    address = urlsplit(url)
    connection = http.client.HTTPSConnection(address.hostname or "", address.port, timeout=timeout, context=context)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
