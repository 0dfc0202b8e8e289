"""OpenAPI: what every kind looks like and what can be done with it, for kubectl's explain, apply and validation."""

from kubewright.controlplane.embedded.openapi.response import openapi_response

__all__ = ["openapi_response"]
