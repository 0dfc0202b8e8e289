"""Endpoints below an object, by name, and those of them that are an update of a part of it by rules of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from kubewright.controlplane.embedded.builtins.certificates import approving
from kubewright.controlplane.embedded.builtins.cluster import finalizing
from kubewright.controlplane.embedded.builtins.pod_parts import debugging, resizing
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse, json_response
from kubewright.controlplane.embedded.registry.resources import Strategy
from kubewright.controlplane.embedded.rest import streams
from kubewright.controlplane.embedded.rest.binding import bind, bind_named
from kubewright.controlplane.embedded.rest.bodies import read_object
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.eviction import evict
from kubewright.controlplane.embedded.rest.patching import patch
from kubewright.controlplane.embedded.rest.reading import get
from kubewright.controlplane.embedded.rest.scaling import scale
from kubewright.controlplane.embedded.rest.token_requests import token
from kubewright.controlplane.embedded.rest.writing import update

SubresourceHandler: TypeAlias = Callable[[Call, HTTPRequest], HTTPResponse]


def _part(call: Call, request: HTTPRequest, rules: Strategy) -> HTTPResponse:
    """Read or change an object by the rules of one of its parts."""
    partial = replace(call, resource=replace(call.resource, strategy=rules))
    match call.target.verb:
        case "get":
            entry = get(call)
        case "patch":
            entry, _ = patch(partial, request.header("content-type").partition(";")[0].strip(), request.body)
        case _:
            entry, _ = update(partial, read_object(partial, request))
    gvk = call.resource.gvk
    return json_response({"kind": gvk.kind, "apiVersion": gvk.api_version, **entry.value})


# Pods


def ephemeral_containers(call: Call, request: HTTPRequest) -> HTTPResponse:
    """Debug containers can be added to a running pod, and by this endpoint only."""
    return _part(call, request, debugging(call.resource.strategy))


def resize(call: Call, request: HTTPRequest) -> HTTPResponse:
    """Resources of containers can be changed in place, and by this endpoint only."""
    return _part(call, request, resizing(call.resource.strategy))


# Namespaces


def finalize(call: Call, request: HTTPRequest) -> HTTPResponse:
    """The finalizers in a namespace's spec are changed by this endpoint only; without any, it is removed."""
    resource = replace(call.resource, strategy=finalizing(call.resource.strategy))
    finalized = replace(call, resource=resource)
    entry, _ = update(finalized, read_object(finalized, request))
    return json_response({"kind": "Namespace", "apiVersion": "v1", **entry.value})


# Certificate signing requests


def approval(call: Call, request: HTTPRequest) -> HTTPResponse:
    """A request is approved or denied by this endpoint only."""
    return _part(call, request, approving(call.resource.strategy, call.services.moment))


HANDLERS: dict[tuple[str, str, str], SubresourceHandler] = {
    ("*", "*", "scale"): scale,
    ("", "bindings", ""): bind_named,
    ("", "pods", "binding"): bind,
    ("", "pods", "eviction"): evict,
    ("", "pods", "log"): streams.log,
    ("", "pods", "exec"): streams.attach,
    ("", "pods", "attach"): streams.attach,
    ("", "pods", "portforward"): streams.forward,
    ("", "pods", "proxy"): streams.proxy,
    ("", "services", "proxy"): streams.proxy,
    ("", "nodes", "proxy"): streams.proxy,
    ("", "pods", "ephemeralcontainers"): ephemeral_containers,
    ("", "pods", "resize"): resize,
    ("", "namespaces", "finalize"): finalize,
    ("", "serviceaccounts", "token"): token,
    ("certificates.k8s.io", "certificatesigningrequests", "approval"): approval,
}
"""By group, plural and subresource. Status, and what is not here, is an ordinary read or update of the object."""
