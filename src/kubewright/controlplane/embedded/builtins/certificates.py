"""Certificate signing requests. Who asks is not what the request says, but whom the server authenticated."""

from __future__ import annotations

from collections.abc import Mapping

from kubewright.controlplane.embedded.builtins.values import Errors
from kubewright.controlplane.embedded.document import JSONObject, inside, items, mapping, text
from kubewright.controlplane.embedded.resources import Strategy
from kubewright.controlplane.embedded.status import required

_REQUESTER = ("username", "uid", "groups", "extra")


def _forget_requester(request: JSONObject) -> None:
    """What the client says of itself is dropped; admission, which knows the user, fills it in."""
    spec = inside(request, "spec")
    for field in _REQUESTER:
        spec.pop(field, None)


def _keep_spec(new: JSONObject, old: JSONObject) -> None:
    new["spec"] = mapping(old, "spec")


def _validate(request: JSONObject) -> Errors:
    spec = mapping(request, "spec")
    errors: Errors = [] if items(spec, "usages") else [required("spec.usages")]
    if not text(spec, "signerName"):
        errors.append(required("spec.signerName"))
    if not text(spec, "request"):
        errors.append(required("spec.request"))
    return errors


def _fields(request: JSONObject) -> Mapping[str, str]:
    return {"spec.signerName": text(request, "spec", "signerName")}


CERTIFICATE_SIGNING_REQUEST = Strategy(
    prepare_create=_forget_requester,
    prepare_update=_keep_spec,
    validate=_validate,
    selectable_fields=_fields,
    selectable=frozenset(_fields({})),
)
