"""Recording the requests of restricted clients in a test run, for `kubewright roles --used`.

`pytest --record-permissions FILE` sets the environment variable, which processes of the run inherit. All append to the
file: each line is one event, in the form of a server's own audit log.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kubewright.client import Client
from kubewright.client.request_observer import RequestAttempt
from kubewright.testing.audit_file import AuditFileRequest

VARIABLE = "KUBEWRIGHT_RECORD_PERMISSIONS"
"""The file to append to; nothing is recorded without it."""


@contextmanager
def recorded(client: Client, user: str) -> Iterator[None]:
    """The requests of the client while the block runs are recorded, refused ones included, each different one once."""
    file = os.environ.get(VARIABLE)
    if not file:
        yield
        return
    # A server's own understanding of paths; it is not imported by runs that do not record.
    from kubewright.controlplane.embedded.endpoints.request import parse_query, parse_target, requested_name

    found: dict[AuditFileRequest, None] = {}

    def observe(attempt: RequestAttempt) -> None:
        path, _, query = attempt.target.partition("?")
        parameters = parse_query(query)
        target = parse_target(attempt.method, path, parameters)
        request = AuditFileRequest(
            user=user,
            verb=target.verb,
            group=target.group,
            resource=target.resource,
            subresource=target.subresource,
            namespace=target.namespace,
            name=requested_name(target, parameters),
            is_apply=target.verb == "patch" and "force" in parameters.values,
        )
        if request.resource:
            found[request] = None

    unsubscribe = client.observe_requests(observe)
    try:
        yield
    finally:
        unsubscribe()
        with Path(file).open("ab", buffering=0) as log:
            # At once, so that lines of other processes do not come in between.
            log.write(b"".join(request.line() for request in found))
