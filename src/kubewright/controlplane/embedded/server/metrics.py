"""`/metrics`: the requests that were answered, for those who look whether a server is alive and what it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubewright.controlplane.embedded.http.exchange import HTTPResponse
from kubewright.controlplane.embedded.server.audit import AuditLog

_VERBS: Final = {"create": "POST", "update": "PUT", "deletecollection": "DELETE"}


def metrics_response(audit: AuditLog) -> HTTPResponse:
    """What there is, in the text format of Prometheus."""
    return HTTPResponse(200, "".join(_lines(audit)).encode(), "text/plain; version=0.0.4; charset=utf-8")


def _lines(audit: AuditLog) -> Iterator[str]:
    yield "# HELP apiserver_request_total Requests by verb, group, version, resource, subresource and status.\n"
    yield "# TYPE apiserver_request_total counter\n"
    for (verb, group, version, resource, subresource, code), count in sorted(audit.counts.items()):
        labels = {
            "code": str(code),
            "component": "apiserver" if resource else "",
            "group": group,
            "resource": resource,
            "subresource": subresource,
            "verb": _VERBS.get(verb, verb.upper()),
            "version": version,
        }
        shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())
        yield f"apiserver_request_total{{{shown}}} {count}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
