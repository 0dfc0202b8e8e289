"""What is wrong, in Python, with an object that the server refused. Imported only when one was refused.

Objects are not checked against their types when they are made, or written: a type checker does that. The server's
message is in its own words, though.
"""

from __future__ import annotations

from kubewright.api.codec import decode, decode_json
from kubewright.api.errors import DecodeError
from kubewright.api.resources import Object
from kubewright.client.errors import APIError


def explain_refusal(error: APIError, method: str, kind: type[Object], sent: bytes) -> None:
    """Add to the error what does not fit the type of the object that was sent, if anything."""
    reason = None if method == "PATCH" else _misfit(kind, sent)
    if reason is None and method == "PUT" and "metadata.resourceVersion" in str(error):
        reason = "an update is of an object that was read: read it and change that, or use apply"
    if reason is not None:
        error.args = (f"{error} ({reason})",)


def _misfit(kind: type[Object], sent: bytes) -> str | None:
    try:
        decode(kind, sent)
    except DecodeError as error:
        reason = str(error).partition(": not a valid ")[2].partition(": ")[2] or str(error)
        return f"{reason}: write {_OWNERS}" if "ownerReferences[" in reason and _has_objects(sent) else reason
    return None


_OWNERS = "set_controller_reference(owner, obj), or owner_references=[owner.as_owner()]"


def _has_objects(sent: bytes) -> bool:
    """Whether there is an object among the owner references."""
    content = decode_json(sent)
    metadata = content.get("metadata") if isinstance(content, dict) else None
    references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    return isinstance(references, list) and any("metadata" in each for each in references if isinstance(each, dict))
