"""What a server sends is what goes back: for every field of every kind, and for real objects of every kind."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import pytest
import yaml
from tools.generate_api.documents import Document, Schema, all_schemas

from kubewright.api import JSONValue, Object, ObjectMeta, encode, from_json, resource_info, to_json
from kubewright.api.apps.v1 import Deployment
from kubewright.api.authentication.v1 import SelfSubjectReview, TokenRequest, TokenRequestSpec, TokenReview
from kubewright.api.authorization.v1 import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
)
from kubewright.api.autoscaling.v1 import Scale
from kubewright.api.builtin import MODULES
from kubewright.api.codec import decode_json
from kubewright.api.core.v1 import (
    Binding,
    ComponentStatus,
    Container,
    ObjectReference,
    PersistentVolume,
    Pod,
    PodSpec,
    ServiceAccount,
)
from kubewright.api.meta import DeleteOptions
from kubewright.api.origin import same
from kubewright.api.policy.v1 import Eviction
from kubewright.api.scheme import Scheme, built_in_kinds
from kubewright.client.config.config import Config
from kubewright.client.errors import AlreadyExists
from kubewright.client.session import Session

ObjectT = TypeVar("ObjectT", bound=Object)

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
OBJECTS = [
    document
    for document in yaml.safe_load_all(Path(__file__).with_name("objects.yaml").read_text(encoding="utf-8"))
    if isinstance(document, dict)
]
KINDS = [cls for api_version in MODULES for cls in built_in_kinds(api_version)]
# Not in objects.yaml: these are sent to a subresource of another object, and component statuses are made by the server.
SUBRESOURCE_BODIES = {Binding, Eviction, Scale, TokenRequest}
READ_ONLY = {ComponentStatus}
# Questions, answered and forgotten.
REVIEWS = {
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
    TokenReview,
}
STORED = [cls for cls in KINDS if cls not in SUBRESOURCE_BODIES | REVIEWS]

each_kind = pytest.mark.parametrize("cls", KINDS, ids=lambda cls: str(resource_info(cls).gvk))

FULL: Mapping[str, JSONValue] = {
    "string": "text",
    "byte": "AAEC",
    "integer": 7,
    "number": 1.5,
    "boolean": True,
    "Quantity": "1500m",
    "IntOrString": "25%",
    "Time": "2024-05-06T07:08:09Z",
    "MicroTime": "2024-05-06T07:08:09.123456Z",
    "RawExtension": {"free": ["form", 1, None, {}]},
    "FieldsV1": {"f:spec": {".": {}}},
    "CustomResourceSubresourceStatus": {},
    "JSON": ["any", {"thing": None}],
    "JSONSchemaPropsOrArray": [{"type": "string"}, {}],
    "JSONSchemaPropsOrBool": False,
    "JSONSchemaPropsOrStringArray": ["a", "b"],
}
ZERO: Mapping[str, JSONValue] = {
    **FULL,
    "string": "",
    "byte": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "Quantity": "0",
    "IntOrString": 0,
    "RawExtension": {},
    "JSON": 0,
    "JSONSchemaPropsOrBool": {},
    "JSONSchemaPropsOrStringArray": {},
}


def type_of(document: dict[str, JSONValue]) -> type[Object]:
    return Scheme().type_for(str(document["apiVersion"]), str(document["kind"]))


def name_of(document: dict[str, JSONValue]) -> str:
    return f"{document['apiVersion']} {document['kind']}"


class Filler:
    """Objects made from schemas with every field present; `sparse` ones have null wherever Go might write it."""

    def __init__(self, documents: list[Document], values: Mapping[str, JSONValue], *, sparse: bool = False) -> None:
        self._schemas = all_schemas(documents)
        self._values = values
        self._sparse = sparse

    def object(self, cls: type[Object]) -> dict[str, JSONValue]:
        gvk = resource_info(cls).gvk
        wanted = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
        name = next(name for name, schema in self._schemas.items() if schema.kinds == [wanted])
        return {**self._structure(name, ()), "apiVersion": gvk.api_version, "kind": gvk.kind}

    def _structure(self, name: str, inside: tuple[str, ...]) -> dict[str, JSONValue]:
        schema = self._schemas[name]
        return {
            field: None if self._sparse and _may_be_null(schema, field) else self._value(held, (*inside, name))
            for field, held in schema.properties.items()
            # Where a structure contains itself, once is enough.
            if not _recurs(held, inside)
        }

    def _value(self, schema: Schema, inside: tuple[str, ...]) -> JSONValue:
        # In metadata, empty and absent are one.
        values = FULL if any(name.startswith(META) for name in inside) else self._values
        if schema.target:
            short = schema.target.rpartition(".")[2]
            return values[short] if short in values else self._structure(schema.target, inside)
        if schema.items is not None:
            return [self._value(schema.items, inside)]
        if schema.additional_properties is not None:
            return {"key": self._value(schema.additional_properties, inside)}
        return schema.enum[-1] if schema.enum else values["byte" if schema.format == "byte" else schema.type]


def _recurs(schema: Schema, inside: tuple[str, ...]) -> bool:
    nested = schema.items or schema.additional_properties
    return schema.target in inside or (nested is not None and _recurs(nested, inside))


def _may_be_null(structure: Schema, field: str) -> bool:
    """True for what Go may hold as nil or zero time: all that is optional but held by value, and required lists."""
    held = structure.properties[field]
    if field in structure.required:
        return held.type in ("array", "object") or held.target in (f"{META}Time", f"{META}MicroTime")
    return held.default is None


def differences(sent: JSONValue, kept: JSONValue, path: str = "") -> Iterator[str]:
    """Where what we would write differs from what the server sent, beyond what no server distinguishes."""
    if isinstance(sent, dict) and isinstance(kept, dict):
        for name, value in sent.items():
            if name in kept:
                yield from differences(value, kept[name], f"{path}.{name}")
            elif value not in (None, []):
                yield f"{path}.{name} is lost: {value!r}"
        # Structures that Go holds by value are written even when they are empty.
        yield from (f"{path}.{name} is new" for name in kept if name not in sent and kept[name] != {})
    elif isinstance(sent, list) and isinstance(kept, list) and len(sent) == len(kept):
        for index, (value, other) in enumerate(zip(sent, kept, strict=True)):
            yield from differences(value, other, f"{path}[{index}]")
    elif not same(sent, kept) and not (sent is None and kept in ([], {})):
        yield f"{path} was {sent!r} and is {kept!r}"


@each_kind
def test_every_field_survives(cls: type[Object], documents: list[Document]) -> None:
    raw = Filler(documents, FULL).object(cls)

    assert same(to_json(from_json(cls, raw)), raw)


@each_kind
def test_every_zero_survives(cls: type[Object], documents: list[Document]) -> None:
    """A zero that was set is not the same as a field that was not."""
    raw = Filler(documents, ZERO).object(cls)

    assert same(to_json(from_json(cls, raw)), raw)


@each_kind
def test_null_is_read_wherever_a_server_may_send_it(cls: type[Object], documents: list[Document]) -> None:
    raw = Filler(documents, FULL, sparse=True).object(cls)

    assert list(differences(raw, to_json(from_json(cls, raw)))) == []


@pytest.fixture
async def session(beta_server: Config) -> AsyncIterator[Session]:
    session = Session(beta_server)
    try:
        yield session
    finally:
        await session.aclose()


@pytest.fixture
async def pod(session: Session) -> str:
    """The path of a pod that is really there, with the service account that pods need."""
    await create_once(session, ServiceAccount(metadata=ObjectMeta(name="default")))
    spec = PodSpec(containers=[Container(name="web", image="nginx")])
    return await create_once(session, Pod(metadata=ObjectMeta(name="web"), spec=spec))


def collection_of(cls: type[Object], namespace: str = "default") -> str:
    info = resource_info(cls)
    root = "/apis" if info.gvk.group else "/api"
    scope = f"/namespaces/{namespace}" if info.namespaced and namespace else ""
    return f"{root}/{info.gvk.api_version}{scope}/{info.plural}"


async def send(session: Session, method: str, target: str, body: JSONValue = None) -> dict[str, JSONValue]:
    headers = [("Content-Type", "application/json")]
    answer = await session.request(method, target, request=f"{method} {target}", headers=headers, body=encode(body))
    value = decode_json(answer.body)
    assert isinstance(value, dict)
    return value


async def create_once(session: Session, obj: Object) -> str:
    collection = collection_of(type(obj))
    with contextlib.suppress(AlreadyExists):
        await send(session, "POST", collection, to_json(obj))
    return f"{collection}/{obj.metadata.name}"


def as_new(obj: ObjectT) -> ObjectT:
    """A copy without what servers set in each new object."""
    fresh = copy.deepcopy(obj)
    fresh.metadata.uid = fresh.metadata.resource_version = ""
    fresh.metadata.creation_timestamp = None
    fresh.metadata.managed_fields = []
    if isinstance(fresh, PersistentVolume):
        fresh.status.last_phase_transition_time = None
    return fresh


def test_there_is_an_object_of_every_kind_that_can_be_created() -> None:
    present = set(map(type_of, OBJECTS))

    assert present == set(KINDS) - SUBRESOURCE_BODIES - READ_ONLY


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize("document", [document for document in OBJECTS if type_of(document) in STORED], ids=name_of)
async def test_an_accepted_object_survives_and_is_accepted_again(
    document: dict[str, JSONValue], session: Session
) -> None:
    cls = type_of(document)
    target = f"{collection_of(cls)}?dryRun=All&fieldValidation=Strict"

    sent = await send(session, "POST", target, document)
    decoded = from_json(cls, sent)
    assert list(differences(sent, to_json(decoded))) == []

    again = from_json(cls, await send(session, "POST", target, to_json(as_new(decoded))))
    assert to_json(as_new(again)) == to_json(as_new(decoded))


@pytest.mark.parametrize("document", [document for document in OBJECTS if type_of(document) in REVIEWS], ids=name_of)
async def test_a_review_is_accepted_and_its_response_survives(document: dict[str, JSONValue], session: Session) -> None:
    cls = type_of(document)
    question = from_json(cls, document)

    sent = await send(session, "POST", f"{collection_of(cls)}?fieldValidation=Strict", to_json(question))

    assert list(differences(sent, to_json(from_json(cls, sent)))) == []


@pytest.mark.parametrize("cls", STORED, ids=lambda cls: str(resource_info(cls).gvk))
async def test_existing_objects_survive(cls: type[Object], session: Session) -> None:
    gvk = resource_info(cls).gvk
    listed = await send(session, "GET", collection_of(cls, namespace=""))

    assert isinstance(listed["items"], list)
    for item in listed["items"]:
        assert isinstance(item, dict)
        # Items of a list come without the two.
        sent: JSONValue = {"apiVersion": gvk.api_version, "kind": gvk.kind, **item}
        assert list(differences(sent, to_json(from_json(cls, sent)))) == []


async def test_an_eviction_is_accepted_and_answered(pod: str, session: Session) -> None:
    eviction = Eviction(metadata=ObjectMeta(name="web"), delete_options=DeleteOptions(dry_run=["All"]))

    answer = await send(session, "POST", f"{pod}/eviction?fieldValidation=Strict", to_json(eviction))

    assert answer["status"] == "Success"


async def test_a_binding_is_accepted_and_answered(pod: str, session: Session) -> None:
    binding = Binding(metadata=ObjectMeta(name="web"), target=ObjectReference(kind="Node", name="node"))

    answer = await send(session, "POST", f"{pod}/binding?dryRun=All&fieldValidation=Strict", to_json(binding))

    assert answer["status"] == "Success"


@pytest.mark.usefixtures("pod")
async def test_a_token_request_survives(session: Session) -> None:
    request = TokenRequest(spec=TokenRequestSpec(audiences=["ops"], expiration_seconds=3600))
    target = f"{collection_of(ServiceAccount)}/default/token?fieldValidation=Strict"

    sent = await send(session, "POST", target, to_json(request))

    assert list(differences(sent, to_json(from_json(TokenRequest, sent)))) == []


async def test_a_scale_survives_and_is_accepted_again(session: Session) -> None:
    document = next(document for document in OBJECTS if type_of(document) is Deployment)
    scale = f"{await create_once(session, from_json(Deployment, document))}/scale"

    sent = await send(session, "GET", scale)
    decoded = from_json(Scale, sent)
    assert list(differences(sent, to_json(decoded))) == []

    decoded.spec.replicas = 2
    answer = await send(session, "PUT", f"{scale}?dryRun=All&fieldValidation=Strict", to_json(decoded))
    assert from_json(Scale, answer).spec.replicas == 2
