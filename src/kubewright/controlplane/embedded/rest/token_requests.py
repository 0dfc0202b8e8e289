"""`serviceaccounts/token`: a TokenRequest is read as any other object, and answered with the token in it."""

from __future__ import annotations

from dataclasses import replace

from kubewright.api.authentication.v1 import TokenRequest
from kubewright.controlplane.embedded.builtins.registry import body_resource
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse, json_response
from kubewright.controlplane.embedded.rest.bodies import read_object
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.metadata import place_in_namespace

_TOKEN_REQUEST = replace(body_resource(TokenRequest), namespaced=True)


def token(call: Call, request: HTTPRequest) -> HTTPResponse:
    """A token of a service account. Raises StatusError."""
    token_call = replace(call, resource=_TOKEN_REQUEST)
    wanted = read_object(token_call, request)
    place_in_namespace(token_call, wanted)
    _TOKEN_REQUEST.strategy.default(wanted)
    call.services.admission.check(call, wanted, None, "CREATE")
    return json_response(call.services.token_issuer.issue(call.target.namespace, call.target.name, wanted), 201)
