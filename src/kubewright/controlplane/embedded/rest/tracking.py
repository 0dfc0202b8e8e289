"""What managed fields need to know of a request: which kind, which part of it, which fields it cannot own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypedDict

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.api.scheme import Scheme
from kubewright.controlplane.embedded.apimachinery.structure import Structure
from kubewright.controlplane.embedded.managedfields import empty_object
from kubewright.controlplane.embedded.managedfields.ownership import VersionConverter
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.rest.suspension import Settled

_SCHEME = Scheme()


class Tracking(TypedDict):
    """The keywords that `track_update` and `apply` share."""

    api_version: str
    subresource: str
    time: str
    structure: Structure
    reset: Sequence[Sequence[str]]
    versions: Mapping[str, Structure] | None
    empty: JSONObject | None
    convert: VersionConverter | None


def tracking(call: Call) -> Tracking:
    """For the endpoint that a request is sent to."""
    resource = call.resource
    return Tracking(
        api_version=resource.gvk.api_version,
        subresource=call.target.subresource,
        time=call.services.now(),
        structure=resource.structure,
        reset=_reset(call),
        versions=_versions(call) if resource.custom else None,
        empty=None if resource.custom else nothing_of(resource.gvk),
        convert=None if resource.convert is None else _converter(call, resource.convert),
    )


def _reset(call: Call) -> Sequence[Sequence[str]]:
    """The fields that the endpoint ignores, so that they cannot be owned through it."""
    if call.resource.strategy.reset is not None:
        return call.resource.strategy.reset.get(call.target.subresource, ())
    if call.is_status:
        return [("metadata",), ("spec",)] if call.resource.custom else [("spec",)]
    return [("status",)] if "status" in call.resource.subresources else []


def _versions(call: Call) -> Mapping[str, Structure]:
    gvk = call.resource.gvk
    return {
        other.gvk.api_version: other.structure
        for other in call.services.catalog.all()
        if other.custom and (other.gvk.group, other.gvk.kind) == (gvk.group, gvk.kind)
    }


def _converter(call: Call, convert: Callable[[JSONObject, str, str, Settled], JSONObject]) -> VersionConverter:
    settled = {} if call.settled is None else call.settled

    def converted(value: JSONObject, source: str, target: str) -> JSONObject:
        bare = {name: each for name, each in value.items() if name not in ("apiVersion", "kind")}
        found = convert(bare, source.rpartition("/")[2], target.rpartition("/")[2], settled)
        return {"apiVersion": target, "kind": value["kind"], **found} if "kind" in value else found

    return converted


@cache
def nothing_of(gvk: GroupVersionKind) -> JSONObject:
    """What a new object of a built-in kind is compared with, to see what it sets."""
    return empty_object(_SCHEME.type_for(gvk.api_version, gvk.kind))
