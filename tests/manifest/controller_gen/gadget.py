"""The Python twin of the Go packages in tools/controller_gen: the same kind, field by field."""

import enum
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, UnsetType

from kubewright.api.core.v1 import LocalObjectReference, SecretKeySelector
from kubewright.api.int_or_string import IntOrString
from kubewright.api.markers import (
    AtLeastOneOf,
    AtMostOneOf,
    Atomic,
    ExactlyOneOf,
    Format,
    Immutable,
    Int32,
    Int64,
    JSONObject,
    JSONValue,
    ListMap,
    ListSet,
    Rule,
)
from kubewright.api.meta import Condition, LabelSelector
from kubewright.api.model import Model
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Column, Resource, Scale, resource
from kubewright.api.time import MicroTime, Time

Slug: TypeAlias = Annotated[str, Meta(min_length=1, max_length=20, pattern="^[a-z]+$")]
Percent: TypeAlias = Annotated[Int32, Meta(ge=0, le=100)]
Tags: TypeAlias = Annotated[list[Annotated[str, Meta(max_length=9)]], ListSet(), Meta(max_length=7)]

EmbeddedResource: TypeAlias = Annotated[JSONObject, Meta(extra_json_schema={"x-kubernetes-embedded-resource": True})]


class Color(enum.Enum):
    BLUE = "blue"
    RED = "red"


class Size(enum.StrEnum):
    SMALL = "small"
    LARGE = "large"


class Port(Model):
    name: str
    number: Annotated[Int32, Meta(ge=1, le=65535)]
    protocol: Literal["TCP", "UDP"] = "TCP"


class Point(Model):
    x: Int64
    y: Int64


class Range(
    Model,
    rules=[
        Rule("self.min <= self.max", message="min must not exceed max", reason="FieldValueInvalid", field_path=".max"),
        Rule("self.max - self.min < 1000", message_expression="self.min < 0 ? 'too low' : 'too wide'"),
    ],
):
    min: Int64
    max: Int64


class Source(Model, rules=[ExactlyOneOf("file", "url", "secret")]):
    file: str | None = None
    url: str | None = None
    secret: str | None = None


class Limit(Model, rules=[AtMostOneOf("soft", "hard")]):
    soft: Int64 | None = None
    hard: Int64 | None = None


class Contact(Model, rules=[AtLeastOneOf("mail", "phone")]):
    mail: str | None = None
    phone: str | None = None


class Open(Model):
    known: str | None = None


class Partial(Model):
    left: str | None = None
    right: str | None = None


class GadgetSpec(Model):
    name: str
    comment: str | None = None
    hint: str | None = None
    enabled: bool
    paused: bool | None = None
    weight: Int64
    count: int | None = None
    small: Int32 | None = None
    large: Int64 | None = None
    ratio: float | None = None
    data: bytes | None = None

    replicas: Annotated[Int32, Meta(ge=1, le=10)] = 3
    lowest: Annotated[Int64, Meta(ge=-5)] | None = None
    fraction: Annotated[float, Meta(gt=0, lt=1)] | None = None
    step: Annotated[Int64, Meta(multiple_of=5)] | None = None
    bounded: Annotated[Int64, Meta(ge=2, le=4)] | None = None
    percent: Percent | None = None

    title: Annotated[str, Meta(min_length=2, max_length=63)] | None = None
    path: Annotated[str, Meta(pattern="^[a-z]+(-[a-z]+)*$")] | None = None
    id: Annotated[str, Format("uuid")] | None = None
    host: Annotated[str, Format("hostname")] | None = None
    slug: Slug | None = None

    color: Color | None = None
    size: Size | None = None
    level: Annotated[Literal[1, 2, 3], Format("int64")] | None = None
    policy: Literal["Always", "Never"] = "Always"

    since: Time | None = None
    exactly: MicroTime | None = None
    memory: Quantity | None = None
    timeout: str | None = None
    surge: IntOrString | None = None
    share: int | Annotated[str, Meta(pattern="^[0-9]+%$")] | None = None

    plain: list[str] | None = None
    few: Annotated[list[str], Meta(min_length=1, max_length=4)] | None = None
    capped: Annotated[list[Int64], Meta(max_length=5)] | None = None
    set: Annotated[list[str], ListSet()] | None = None
    whole: Annotated[list[str], Atomic()] | None = None
    ports: Annotated[list[Port], ListMap("name", "protocol")] | None = None
    doors: Annotated[list[Port], ListMap("name")] | None = None
    words: list[Annotated[str, Meta(min_length=1, max_length=5, pattern="^[a-z]*$")]] | None = None
    digits: list[Annotated[Int64, Meta(ge=1, le=9)]] | None = None
    lights: list[Literal["red", "green"]] | None = None
    names: (
        Annotated[list[Annotated[str, Rule("self != 'admin'", message="this name is reserved")]], Meta(max_length=10)]
        | None
    ) = None
    tags: Tags | None = None
    matrix: list[list[Int64]] | None = None
    slugs: list[Slug] | None = None

    parts: list[Annotated[float, Meta(gt=0, lt=10, extra_json_schema={"multipleOf": 0.5})]] | None = None
    pairs: list[Annotated[list[Int64], Meta(min_length=2, max_length=2)]] | None = None
    bags: list[Annotated[dict[str, str], Meta(min_length=1, max_length=2)]] | None = None
    ids: list[Annotated[str, Format("uuid")]] | None = None
    shares: list[int | Annotated[str, Meta(pattern="^[0-9]+%$")]] | None = None
    manifests: list[EmbeddedResource] | None = None

    labels: dict[str, str] | None = None
    bag: Annotated[dict[str, Int64], Meta(min_length=1, max_length=8)] | None = None
    frozen: Annotated[dict[str, str], Atomic()] | None = None
    merged: dict[str, str] | None = None
    groups: dict[str, list[str]] | None = None
    origins: dict[str, Port] | None = None
    point: Annotated[Point, Atomic()] | None = None
    door: Annotated[Port, Atomic()] | None = None
    window: Port | None = None
    partial: Annotated[Partial, Meta(extra_json_schema={"minProperties": 1})] | None = None

    active: bool = True
    role: str = "web"
    numbers: list[Int64] = [80, 443]
    front: Port = Port(name="web", number=80)
    empty: dict[str, str] = {}

    deadline: Int64 | UnsetType | None = UNSET
    choice: str | None

    anything: JSONValue = None
    free: JSONObject | None = None
    embedded: EmbeddedResource | None = None
    template: EmbeddedResource | None = None
    open: Annotated[Open, Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})] | None = None
    typed: JSONObject | None = None

    header: (
        Annotated[str, Rule("self.startsWith('x-')", message="must start with x-", reason="FieldValueForbidden")] | None
    ) = None
    counter: (
        Annotated[
            Int64,
            Rule("!oldSelf.hasValue() || self >= oldSelf.value()", message="must not decrease", optional_old_self=True),
        ]
        | None
    ) = None
    range: Range | None = None
    source: Source | None = None
    limit: Limit | None = None
    contact: Contact | None = None
    kept: Annotated[str, Immutable()]
    kept_once: Annotated[str, Immutable()] | None = None

    caption: (
        Annotated[
            str,
            Meta(
                title="The caption",
                examples=["Hello"],
                extra_json_schema={
                    "externalDocs": {"url": "https://example.com/captions", "description": "All about captions"}
                },
            ),
        ]
        | None
    ) = None

    selector: LabelSelector | None = None
    reference: LocalObjectReference | None = None
    key: SecretKeySelector | None = None


class GadgetStatus(Model):
    replicas: Int32 | None = None
    selector: str | None = None
    phase: str | None = None
    conditions: Annotated[list[Condition], ListMap("type")] | None = None


class OldGadgetSpec(Model):
    name: str


class OldestGadgetSpec(Model):
    name: str
    comment: str | None = None


@resource(
    "shapes.example.com/v1",
    plural="gadgetry",
    singular="gadget",
    short_names=["gd", "gds"],
    categories=["all", "shapes"],
    namespaced=False,
    scale=Scale(".spec.replicas", ".status.replicas", ".status.selector"),
    columns=[
        Column("Replicas", ".spec.replicas", description="How many there are.", format="int32"),
        Column("Phase", ".status.phase", priority=1),
    ],
    selectable_fields=[".spec.name", ".spec.replicas"],
    definition_annotations={"example.com/owner": "shapes"},
    definition_labels={"example.com/tier": "gold"},
    rules=[Rule("self.metadata.name.size() <= 20", message="the name is too long")],
    extra_json_schema={
        "title": "The gadget",
        "externalDocs": {"url": "https://example.com/gadgets", "description": "All about gadgets"},
    },
)
class Gadget(Resource[GadgetSpec, GadgetStatus]):
    pass


@resource(
    "shapes.example.com/v1beta1",
    kind="Gadget",
    plural="gadgetry",
    short_names=["gd", "gds"],
    categories=["all", "shapes"],
    namespaced=False,
    storage=False,
    deprecated="shapes.example.com/v1beta1 is old: use v1",
    definition_annotations={"example.com/owner": "shapes"},
    definition_labels={"example.com/tier": "gold"},
)
class OldGadget(Resource[OldGadgetSpec, None]):
    pass


@resource(
    "shapes.example.com/v1alpha1",
    kind="Gadget",
    plural="gadgetry",
    short_names=["gd", "gds"],
    categories=["all", "shapes"],
    namespaced=False,
    storage=False,
    served=False,
    deprecated="",
    definition_annotations={"example.com/owner": "shapes"},
    definition_labels={"example.com/tier": "gold"},
)
class OldestGadget(Resource[OldestGadgetSpec, None]):
    pass
