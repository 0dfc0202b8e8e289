"""Endpoints that lead into a running pod or to a service: log, exec, attach, portforward, proxy.

No process runs here, so they end where the real server would begin to talk to a node; errors before that have
its messages.
"""

from __future__ import annotations

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    StatusError,
    bad_request,
    forbidden_field,
    invalid,
    invalid_value,
    not_found,
)
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.reading import get


def check_container(call: Call, pod: JSONObject, requested: str) -> None:
    """The requested container must exist, and may be omitted only where there is a single one."""
    by_field = [items(pod, "spec", field) for field in ("initContainers", "containers", "ephemeralContainers")]
    names = [text(container, "name") for containers in by_field for container in containers]
    if requested and requested not in names:
        raise bad_request(f"container {requested} is not valid for pod {call.target.name}")
    if not requested and len(by_field[1]) > 1:
        raise bad_request(
            f"a container name must be specified for pod {call.target.name}, choose one of: [{' '.join(names)}]"
        )


def log(call: Call, request: HTTPRequest) -> HTTPResponse:
    """Nothing runs here, so there is nothing to read; the request is validated anyway."""
    if errors := _wrong_with_log_options(call):
        raise invalid("PodLogOptions", "", call.target.name, errors)
    pod = get(call).value
    check_container(call, pod, call.query.text("container"))
    if not text(pod, "spec", "nodeName"):
        return HTTPResponse(204, b"", content_type="")
    _node_of(call, pod)
    return HTTPResponse(200, b"", content_type="text/plain")


def _wrong_with_log_options(call: Call) -> list[FieldError]:
    query, errors = call.query, list[FieldError]()
    lines, size, seconds = (query.number(name) for name in ("tailLines", "limitBytes", "sinceSeconds"))
    if lines is not None and lines < 0:
        errors.append(invalid_value("tailLines", lines, "must be greater than or equal to 0"))
    if size is not None and size < 1:
        errors.append(invalid_value("limitBytes", size, "must be greater than 0"))
    if seconds is not None and query.text("sinceTime"):
        errors.append(forbidden_field("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif seconds is not None and seconds < 1:
        errors.append(invalid_value("sinceSeconds", seconds, "must be greater than 0"))
    if query.text("stream"):
        errors.append(forbidden_field("stream", "may not be specified"))
    return errors


def _node_of(call: Call, pod: JSONObject) -> str:
    """The node a pod is on, which must exist and have an address."""
    name = text(pod, "spec", "nodeName")
    if not name:
        raise bad_request(f"pod {call.target.name} does not have a host assigned")
    node = call.services.store.get(f"/core/nodes/{name}")
    if node is None:
        # The real server names the requested kind.
        raise not_found(call.resource.plural, call.resource.gvk.group, name)
    _must_have_address(node.value)
    return name


def _must_have_address(node: JSONObject) -> None:
    if not items(node, "status", "addresses"):
        raise StatusError(500, "", "no preferred addresses found; known addresses: []")


def _admit(call: Call) -> JSONObject:
    """The options of a connection: the query as an object, which webhooks may change. Raises StatusError to refuse."""
    query = call.query
    options: JSONObject = {name: True for name in ("stdin", "stdout", "stderr", "tty") if query.flag(name)}
    options |= {name: query.text(name) for name in ("container", "path") if query.text(name)}
    if command := query.repeated.get("command"):
        words: list[JSONValue] = list(command)
        options["command"] = words
    call.services.admission.check(call, options, None, "CONNECT")
    return options


def attach(call: Call, request: HTTPRequest) -> HTTPResponse:
    """Exec and attach: to one container of a pod that is on a node."""
    options = _admit(call)
    check_container(call, get(call).value, text(options, "container"))
    return _forwarded(call, request)


def forward(call: Call, request: HTTPRequest) -> HTTPResponse:
    """Port forwarding: to a pod that is on a node."""
    _admit(call)
    return _forwarded(call, request)


def _forwarded(call: Call, request: HTTPRequest) -> HTTPResponse:
    node = _node_of(call, get(call).value)
    if not request.header("upgrade"):
        raise bad_request("Upgrade request required")
    message = f"error dialing backend: no process runs on the node {node} of an embedded control plane"
    raise StatusError(500, "", message)


def proxy(call: Call, request: HTTPRequest) -> HTTPResponse:
    """HTTP to a pod that has an address, to a service or to a node."""
    _admit(call)
    entry, name = get(call), call.target.name
    if call.resource.plural == "services":
        raise StatusError(503, "ServiceUnavailable", f'no endpoints available for service "{name}"')
    if call.resource.plural == "pods" and not text(entry.value, "status", "podIP"):
        raise bad_request("address not allowed")
    if call.resource.plural == "nodes":
        _must_have_address(entry.value)
    message = f"error trying to reach service: nothing listens on {name} in an embedded control plane"
    raise StatusError(503, "ServiceUnavailable", message)
