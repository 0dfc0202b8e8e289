"""`/healthz`, `/livez` and `/readyz`: a server that answers at all is healthy, and reports so for each check.

The names of the checks are those of the real server, in its order: probes and dashboards request them one by one.
"""

from __future__ import annotations

from kubewright.controlplane.embedded.endpoints.request import QueryParameters
from kubewright.controlplane.embedded.http.exchange import HTTPResponse

_HOOKS = tuple(
    f"poststarthook/{name}"
    for name in (
        "start-apiserver-admission-initializer",
        "generic-apiserver-start-informers",
        "priority-and-fairness-config-consumer",
        "priority-and-fairness-filter",
        "storage-object-count-tracker-hook",
        "start-apiextensions-informers",
        "start-apiextensions-controllers",
        "crd-informer-synced",
        "start-system-namespaces-controller",
        "peer-endpoint-reconciler-controller",
        "start-cluster-authentication-info-controller",
        "start-kube-apiserver-identity-lease-controller",
        "start-kube-apiserver-identity-lease-garbage-collector",
        "storage-readiness",
        "start-legacy-token-tracking-controller",
        "start-service-ip-repair-controllers",
        "rbac/bootstrap-roles",
        "scheduling/bootstrap-system-priority-classes",
        "priority-and-fairness-config-producer",
        "bootstrap-controller",
        "start-kubernetes-service-cidr-controller",
        "start-kube-aggregator-informers",
        "apiservice-status-local-available-controller",
        "apiservice-status-remote-available-controller",
        "apiservice-registration-controller",
        "apiservice-discovery-controller",
        "kube-apiserver-autoregistration",
    )
)
_ALIVE = (
    "ping",
    "log",
    "loopback-serving-certificate",
    "etcd",
    *_HOOKS,
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
_READY = (
    *("ping", "log", "etcd", "etcd-readiness", "informer-sync"),
    *_ALIVE[_ALIVE.index(_HOOKS[0]) :],
    "shutdown",
)
CHECKS = {"healthz": _ALIVE, "livez": _ALIVE, "readyz": _READY}
"""The checks of each of the three, in order."""


def health_response(path: str, query: QueryParameters) -> HTTPResponse | None:
    """The response of one of the three or of a single check of it; None for any other path."""
    name, _, check = path.strip("/").partition("/")
    checks = CHECKS.get(name, ())
    if check:
        return _plain(b"ok") if check in checks else None
    if not checks:
        return None
    if "verbose" not in query.values:
        return _plain(b"ok", sniffed=False)
    excluded = query.repeated.get("exclude", ())
    lines = [f"[+]{found} {'excluded: ' if found in excluded else ''}ok" for found in checks]
    unknown = sorted({found for found in excluded if found not in checks})
    if unknown:
        names = ",".join(f'"{found}"' for found in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
    return _plain("\n".join([*lines, f"{name} check passed\n"]).encode(), sniffed=False)


def _plain(body: bytes, *, sniffed: bool = True) -> HTTPResponse:
    headers = [] if sniffed else [("X-Content-Type-Options", "nosniff")]
    return HTTPResponse(200, body, "text/plain; charset=utf-8", headers)
