"""The requests that a real kube-apiserver has answered, by its own audit log.

    audit = AuditFile(tmp_path)
    async with ControlPlane.real(api_server_flags=audit.flags) as plane:
        ...
    used = recorded_permissions(audit.requests(), "podmanager")

The embedded control plane has `plane.audit` without further ado.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import msgspec

_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],  # a watch is logged when it starts, and again when it ends
    "rules": [{"level": "Metadata"}],
}


class _User(msgspec.Struct):
    username: str = ""


class _ObjectReference(msgspec.Struct, rename="camel"):
    resource: str = ""
    subresource: str = ""
    api_group: str = ""
    namespace: str = ""
    name: str = ""


class _ResponseStatus(msgspec.Struct):
    code: int = 0


class _Event(msgspec.Struct, rename="camel"):
    verb: str
    user: _User
    request_uri: str = msgspec.field(name="requestURI")
    object_ref: _ObjectReference = msgspec.field(default_factory=_ObjectReference)
    response_status: _ResponseStatus = msgspec.field(default_factory=_ResponseStatus)


class AuditFileRequest(msgspec.Struct, frozen=True):
    """One request, as `recorded_permissions` reads it."""

    user: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    is_apply: bool


class AuditFile:
    """The audit log of a server that was started with `flags`, in files of a directory of its own."""

    def __init__(self, directory: Path) -> None:
        self._log = directory / "audit.log"
        policy = directory / "audit-policy.json"
        policy.write_text(json.dumps(_POLICY))
        self.flags = [f"--audit-policy-file={policy}", f"--audit-log-path={self._log}", "--audit-log-mode=blocking"]
        """For `ControlPlane.real(api_server_flags=...)`."""

    def requests(self) -> Iterator[AuditFileRequest]:
        """The requests that were answered so far; watches twice, at their start and at their end."""
        decoder = msgspec.json.Decoder(_Event)
        for line in self._log.read_bytes().splitlines():
            event = decoder.decode(line)
            about = event.object_ref
            # No media type is logged. Only an apply may have the parameter `force`, and only an apply creates by patch.
            is_apply = event.verb == "patch" and (
                event.response_status.code == 201 or "force" in parse_qs(urlsplit(event.request_uri).query)
            )
            yield AuditFileRequest(
                event.user.username,
                event.verb,
                about.api_group,
                about.resource,
                about.subresource,
                about.namespace,
                about.name,
                is_apply,
            )
