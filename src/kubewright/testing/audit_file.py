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

from kubewright.api.errors import KubernetesError

_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],  # a watch is logged when it starts, and again when it ends
    "rules": [{"level": "Metadata"}],
}


_RECORDED = "kubewright/recorded-by"


class AuditLogError(KubernetesError):
    """A file is not an audit log; the message names the line."""


class _User(msgspec.Struct, omit_defaults=True):
    username: str = ""


class _ObjectReference(msgspec.Struct, rename="camel", omit_defaults=True):
    resource: str = ""
    subresource: str = ""
    api_group: str = ""
    namespace: str = ""
    name: str = ""


class _ResponseStatus(msgspec.Struct, omit_defaults=True):
    code: int = 0


class _Event(msgspec.Struct, rename="camel", omit_defaults=True):
    verb: str
    user: _User
    request_uri: str = msgspec.field(name="requestURI")
    impersonated_user: _User | None = None
    object_ref: _ObjectReference = msgspec.field(default_factory=_ObjectReference)
    response_status: _ResponseStatus = msgspec.field(default_factory=_ResponseStatus)
    annotations: dict[str, str] = msgspec.field(default_factory=dict)
    api_version: str = ""
    kind: str = ""


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
    is_of_test: bool = False
    """Whether a test run has recorded it."""

    def line(self) -> bytes:
        """It as a line of an audit log, marked as recorded by a test run."""
        event = _Event(
            verb=self.verb,
            user=_User(self.user),
            request_uri="?force=false" if self.is_apply else "",
            object_ref=_ObjectReference(self.resource, self.subresource, self.group, self.namespace, self.name),
            annotations={_RECORDED: "pytest"},
            api_version="audit.k8s.io/v1",
            kind="Event",
        )
        return msgspec.json.encode(event) + b"\n"


def requests_in(path: Path) -> Iterator[AuditFileRequest]:
    """The requests of an audit log, of a server or of a test run; watches may be there twice.

    Raises `AuditLogError` for a file that is none. A last line that is not complete yet is left out.
    """
    decoder = msgspec.json.Decoder(_Event)
    try:
        with path.open("rb") as log:  # which may be larger than the memory
            for number, line in enumerate(log, 1):
                try:
                    yield _request(decoder.decode(line))
                except msgspec.MsgspecError:
                    if line.endswith(b"\n"):
                        raise AuditLogError(
                            f"{path}, line {number}: expected an event of an audit log, as JSON on one line: name a "
                            "file that pytest --record-permissions or a kube-apiserver with --audit-log-path has "
                            "written"
                        ) from None
    except OSError as error:
        raise AuditLogError(f"cannot read {path}: {error.strerror}") from None


def _request(event: _Event) -> AuditFileRequest:
    about = event.object_ref
    # No media type is logged. Only an apply may have the parameter `force`, and only an apply creates by patch.
    is_apply = event.verb == "patch" and (
        event.response_status.code == 201 or "force" in parse_qs(urlsplit(event.request_uri).query)
    )
    return AuditFileRequest(
        user=(event.impersonated_user or event.user).username,
        verb=event.verb,
        group=about.api_group,
        resource=about.resource,
        subresource=about.subresource,
        namespace=about.namespace,
        name=about.name,
        is_apply=is_apply,
        is_of_test=_RECORDED in event.annotations,
    )


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
        return requests_in(self._log)
