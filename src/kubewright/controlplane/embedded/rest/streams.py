"""Endpoints that lead into a running pod or to a service: exec, attach, portforward, proxy.

No process runs here, so they end where the real server would begin to talk to a node; what is wrong before that is
said in its words.
"""

from __future__ import annotations

from kubewright.controlplane.embedded.document import JSONObject, items, text
from kubewright.controlplane.embedded.exchange import Request, Response
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.reading import get
from kubewright.controlplane.embedded.status import StatusError, bad_request


def check_container(call: Call, pod: JSONObject) -> None:
    """The container that is asked for must exist, and may be left out only where there is no choice."""
    by_field = [items(pod, "spec", field) for field in ("initContainers", "containers", "ephemeralContainers")]
    names = [text(container, "name") for containers in by_field for container in containers]
    asked = call.query.text("container")
    if asked and asked not in names:
        raise bad_request(f"container {asked} is not valid for pod {call.target.name}")
    if not asked and len(by_field[1]) > 1:
        raise bad_request(
            f"a container name must be specified for pod {call.target.name}, choose one of: [{' '.join(names)}]"
        )


def attach(call: Call, request: Request) -> Response:
    """Exec and attach: to one container of a pod that is on a node."""
    check_container(call, get(call).value)
    return forward(call, request)


def forward(call: Call, request: Request) -> Response:
    """Port forwarding: to a pod that is on a node."""
    node = text(get(call).value, "spec", "nodeName")
    if not node:
        raise bad_request(f"pod {call.target.name} does not have a host assigned")
    if not request.header("upgrade"):
        raise bad_request("Upgrade request required")
    message = f"error dialing backend: no process runs on the node {node} of an embedded control plane"
    raise StatusError(500, "InternalError", message)


def proxy(call: Call, request: Request) -> Response:
    """HTTP to a pod that has an address, to a service or to a node."""
    entry, name = get(call), call.target.name
    if call.resource.plural == "services":
        raise StatusError(503, "ServiceUnavailable", f'no endpoints available for service "{name}"')
    if call.resource.plural == "pods" and not text(entry.value, "status", "podIP"):
        raise bad_request("address not allowed")
    message = f"error trying to reach service: nothing listens on {name} in an embedded control plane"
    raise StatusError(503, "ServiceUnavailable", message)
