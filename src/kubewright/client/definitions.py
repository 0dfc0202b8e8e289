"""Kinds that a server will soon serve: a CustomResourceDefinition defines them, and its endpoints lag behind.

kube-apiserver reports a definition as established, and for some moments still answers 404 for its objects and leaves
it out of discovery. Without permission to read definitions, the server's 404 is final.
"""

from __future__ import annotations

from msgspec import field

from kubewright.api.codec import decode_model
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import GroupVersionKind
from kubewright.api.meta import ObjectMeta
from kubewright.api.model import BuiltIn
from kubewright.client.paths import may_be_custom, segment
from kubewright.client.session import Session

_GROUP = "apiextensions.k8s.io"
_PATH = f"/apis/{_GROUP}/v1/customresourcedefinitions"
_NAMES_ONLY = ("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")


class _Names(BuiltIn):
    kind: str = ""


class _Version(BuiltIn):
    name: str = ""
    served: bool = False


class _Spec(BuiltIn):
    names: _Names = field(default_factory=_Names)
    versions: list[_Version] = field(default_factory=list)


class _Condition(BuiltIn):
    type: str = ""
    status: str = ""


class _Status(BuiltIn):
    conditions: list[_Condition] = field(default_factory=list)


class _Definition(BuiltIn):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: _Spec = field(default_factory=_Spec)
    status: _Status = field(default_factory=_Status)

    def serves(self, version: str) -> bool:
        is_refused = any(each.type == "NamesAccepted" and each.status == "False" for each in self.status.conditions)
        is_served = any(each.name == version and each.served for each in self.spec.versions)
        return is_served and not is_refused and self.metadata.deletion_timestamp is None


class _Named(BuiltIn):
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


class _NamedList(BuiltIn):
    items: list[_Named] = field(default_factory=list)


class Definitions:
    """The definitions on a server, requested when a kind is not served. Nothing is cached."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def claim_resource(self, group: str, version: str, plural: str) -> bool:
        """Whether a definition declares a resource."""
        if not may_be_custom(group):
            return False
        try:
            return (await self._read(f"{plural}.{group}")).serves(version)
        except KubernetesError:
            return False

    async def claim_kind(self, gvk: GroupVersionKind) -> bool:
        """Whether a definition declares a kind that is known only by its name."""
        if not may_be_custom(gvk.group):
            return False
        try:
            response = await self._session.request("GET", _PATH, request="list definitions", headers=[_NAMES_ONLY])
            names = [each.metadata.name for each in decode_model(_NamedList, response.body).items]
            found = [await self._read(name) for name in names if name.endswith(f".{gvk.group}")]
        except KubernetesError:
            return False
        return any(each.spec.names.kind == gvk.kind and each.serves(gvk.version) for each in found)

    async def _read(self, name: str) -> _Definition:
        response = await self._session.request("GET", f"{_PATH}/{segment(name)}", request=f"get definition {name}")
        return decode_model(_Definition, response.body)
