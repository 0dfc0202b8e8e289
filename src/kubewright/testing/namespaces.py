"""A namespace of its own for each test."""

from __future__ import annotations

import http.client
import json
import re
import time
import uuid

from kubewright.controlplane import ControlPlane, ControlPlaneError
from kubewright.controlplane.https import request

_TIMEOUT = 10.0
_LONGEST_STEM = 40


def unique_name(test_name: str) -> str:
    """A namespace name that tells which test it belongs to and that no other call returns."""
    stem = re.sub(r"[^a-z0-9]+", "-", test_name.lower())[:_LONGEST_STEM].strip("-")
    return f"{stem or 'test'}-{uuid.uuid4().hex[:8]}"


def create_namespace(plane: ControlPlane, name: str) -> None:
    """Create the namespace, and return once pods are admitted in it (its service account is there)."""
    context = plane.admin.ssl_context()
    manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    status, body = request(plane.url, context, "POST", "/api/v1/namespaces", json.dumps(manifest).encode())
    if status != http.HTTPStatus.CREATED:
        raise ControlPlaneError(f'cannot create the namespace "{name}": {status} {body.decode(errors="replace")}')
    deadline = time.monotonic() + _TIMEOUT
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    while request(plane.url, context, "GET", account)[0] != http.HTTPStatus.OK:
        if time.monotonic() > deadline:
            raise ControlPlaneError(
                f'the namespace "{name}" got no service account within {_TIMEOUT:.0f} s: is kube-controller-manager on?'
            )
        time.sleep(0.01)


def delete_namespace(plane: ControlPlane, name: str) -> None:
    """Ask for the deletion of the namespace and everything in it, without waiting for it."""
    request(plane.url, plane.admin.ssl_context(), "DELETE", f"/api/v1/namespaces/{name}")
