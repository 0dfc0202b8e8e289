"""`/metrics`: what the server has answered, what is open and stored, for those who look whether it is alive.

All but the count of requests is found out when it is asked for.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from kubewright.controlplane.embedded.endpoints.request import Target
from kubewright.controlplane.embedded.http.exchange import HTTPResponse
from kubewright.controlplane.embedded.rest.call import Services
from kubewright.controlplane.embedded.server.audit import AuditLog

_VERBS: Final = {"create": "POST", "update": "PUT", "deletecollection": "DELETE"}


def metrics_response(audit: AuditLog, streams: Iterable[Target], services: Services) -> HTTPResponse:
    """What there is, in the text format of Prometheus. `streams` are the open ones."""
    lines = (*_requests(audit), *_streams(streams), *_objects(services), *_process())
    return HTTPResponse(200, "".join(lines).encode(), "text/plain; version=0.0.4; charset=utf-8")


def _requests(audit: AuditLog) -> Iterator[str]:
    name = "apiserver_request_total"
    yield _head(name, "counter", "Requests by verb, group, version, resource, subresource and status.")
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
        yield _sample(name, labels, count)


def _streams(streams: Iterable[Target]) -> Iterator[str]:
    name = "apiserver_longrunning_requests"
    yield _head(name, "gauge", "Open watches and other streams.")
    open_ = Counter((one.group, one.resource, _scope(one), one.subresource, one.verb, one.version) for one in streams)
    for (group, resource, scope, subresource, verb, version), count in sorted(open_.items()):
        labels = {
            "component": "apiserver",
            "group": group,
            "resource": resource,
            "scope": scope,
            "subresource": subresource,
            "verb": verb.upper(),
            "version": version,
        }
        yield _sample(name, labels, count)


def _scope(target: Target) -> str:
    return "resource" if target.name else "namespace" if target.namespace else "cluster"


def _objects(services: Services) -> Iterator[str]:
    name = "apiserver_resource_objects"
    yield _head(name, "gauge", "Stored objects by kind.")
    for group, resource, prefix in sorted({(one.gvk.group, one.plural, one.prefix) for one in services.catalog.all()}):
        found = services.store.range(prefix, limit=1)
        yield _sample(name, {"group": group, "resource": resource}, len(found.entries) + found.remaining)


def _process() -> Iterator[str]:
    name = "process_cpu_seconds_total"
    yield _head(name, "counter", "CPU time of the process, which may run more than this server.")
    yield _sample(name, {}, round(time.process_time(), 2))


def _head(name: str, type_: str, what: str) -> str:
    return f"# HELP {name} {what}\n# TYPE {name} {type_}\n"


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{shown}}} {value}\n" if labels else f"{name} {value}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
