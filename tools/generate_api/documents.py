"""The description a server gives of its API: OpenAPI v3 and discovery, one document per group version."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.json import decode

from kubewright.client.session import Session

# Enabling betas adds group versions and changes none: the structures are compiled in, whatever is enabled.
SERVER_FLAGS = ("--runtime-config=api/beta=true", "--feature-gates=AllBeta=true")


class Schema(Struct, rename="camel"):
    """The parts of an OpenAPI schema that a type is made of, and its description, which is none of them."""

    ref: str = field(name="$ref", default="")
    description: str = ""
    all_of: list[Schema] = []
    type: str = ""
    format: str = ""
    enum: list[str] = []
    default: object = None
    items: Schema | None = None
    additional_properties: Schema | None = None
    properties: dict[str, Schema] = {}
    required: list[str] = []
    list_type: str = field(name="x-kubernetes-list-type", default="")
    list_map_keys: list[str] = field(name="x-kubernetes-list-map-keys", default_factory=list)
    map_type: str = field(name="x-kubernetes-map-type", default="")
    patch_merge_key: str = field(name="x-kubernetes-patch-merge-key", default="")
    patch_strategy: str = field(name="x-kubernetes-patch-strategy", default="")
    kinds: list[dict[str, str]] = field(name="x-kubernetes-group-version-kind", default_factory=list)

    @property
    def target(self) -> str:
        """The name of the schema this one stands for; empty when it stands for itself."""
        ref = self.ref or (self.all_of[0].ref if self.all_of else "")
        return ref.removeprefix("#/components/schemas/")


class APIResource(Struct, rename="camel"):
    """A resource or, with a slash in its name, a subresource. An empty group or version is the document's own."""

    name: str
    kind: str
    namespaced: bool
    singular_name: str = ""
    group: str = ""
    version: str = ""
    short_names: list[str] = []
    categories: list[str] = []


class Document(Struct):
    """One group version: its schemas by their full name, and its resources."""

    api_version: str
    schemas: dict[str, Schema]
    resources: list[APIResource]


class _Index(Struct):
    paths: dict[str, object]


class _Components(Struct):
    schemas: dict[str, Schema] = {}


class _OpenAPI(Struct):
    components: _Components = field(default_factory=_Components)


class _Discovery(Struct):
    resources: list[APIResource] = []


async def fetch_documents(session: Session) -> list[Document]:
    """Every stable and beta group version that the server serves, in the order of their names."""
    documents = []
    for path in sorted(decode(await _get(session, "/openapi/v3"), type=_Index).paths):
        api_version = _api_version(path)
        if api_version is None or "alpha" in api_version:
            continue
        openapi = decode(await _get(session, f"/openapi/v3/{path}"), type=_OpenAPI)
        discovery = decode(await _get(session, f"/{path}"), type=_Discovery)
        documents.append(Document(api_version, openapi.components.schemas, discovery.resources))
    return documents


def all_schemas(documents: list[Document]) -> Mapping[str, Schema]:
    """The schemas of all documents. A document repeats those it shares with others."""
    return {name: schema for document in documents for name, schema in document.schemas.items()}


def _api_version(path: str) -> str | None:
    """`apps/v1` for `apis/apps/v1`, `v1` for `api/v1`, None for what is not a group version."""
    match path.split("/"):
        case ["api", version]:
            return version
        case ["apis", group, version]:
            return f"{group}/{version}"
    return None


async def _get(session: Session, path: str) -> bytes:
    return (await session.request("GET", path, request=f"reading {path}")).body
