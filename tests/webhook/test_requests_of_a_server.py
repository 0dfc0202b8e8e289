"""What an API server asks about, as functions see it: operations, subresources, sizes, and content that is kept."""

from __future__ import annotations

import asyncio
from typing import Annotated

import pytest

from kubewright import Manager, Meta, Model, ObjectMeta, Resource, Scale, resource
from kubewright.api import Dynamic
from kubewright.api.admissionregistration.v1 import RuleWithOperations
from kubewright.api.autoscaling.v1 import Scale as ScaleObject
from kubewright.api.codec import from_json
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.client import Client
from kubewright.client.errors import Forbidden, Invalid
from kubewright.testing import Install, LocalWebhooks, Running
from kubewright.webhook import (
    AdmissionResponse,
    Denied,
    FieldCause,
    Review,
    ReviewRequest,
    defaults,
    handles,
    serve_webhooks,
    validates,
)

GROUP = "requests.webhook.test"
# The API server takes 3 MiB of a request, and etcd stores half of that.
HUGE, STORED = 2_900_000, 1_200_000


class ShelfSpec(Model):
    boards: int = 1
    note: str = ""
    marks: dict[str, str] = {}


class ShelfStatus(Model):
    books: int = 0
    checked_by: str = ""


@resource(
    f"{GROUP}/v1",
    plural="shelves",
    scale=Scale(".spec.boards", ".status.books"),
    extra_json_schema={"x-kubernetes-preserve-unknown-fields": True},
)
class Shelf(Resource[ShelfSpec, ShelfStatus]):
    """Holds books, and fields that this class does not know."""


@defaults(Shelf)
def annotate(review: Review[Shelf]) -> None:
    review.object.metadata.annotations["test.example.com/seen"] = "né ~0/1 😀"
    review.object.spec.marks["~1/a~b/é"] = "~"


@validates(Shelf, on=["CREATE", "UPDATE", "DELETE"], side_effects="NoneOnDryRun")
def check(review: Review[Shelf]) -> list[FieldCause]:
    if review.operation != "DELETE" and review.object.spec.boards > 10:
        return [FieldCause.invalid("spec.boards", review.object.spec.boards, "must be at most 10")]
    if review.object.spec.note == "what is it":
        dry = " as a dry run" if review.is_dry_run else ""
        raise Denied(f"{review.operation}{dry} of {review.object.metadata.name}")
    return []


@defaults(Shelf, subresource="status", on=["UPDATE"])
def sign(review: Review[Shelf]) -> None:
    review.object.status.checked_by = "webhook"


@validates(Shelf, subresource="status", on=["UPDATE"])
def check_status(review: Review[Shelf]) -> list[FieldCause]:
    assert review.old is not None
    if review.object.status.books < review.old.status.books:
        return [FieldCause.forbidden("status.books", "books stay")]
    return []


SCALES = RuleWithOperations(
    api_groups=[GROUP], api_versions=["v1"], operations=["UPDATE"], resources=["shelves/scale"], scope="Namespaced"
)


@handles("/scales", rules=[SCALES])
def check_scale(request: ReviewRequest) -> AdmissionResponse:
    scale = request.object_as(ScaleObject)
    assert scale is not None
    assert (request.sub_resource, request.kind.kind) == ("scale", "Scale")
    if (scale.spec.replicas or 0) > 10:
        return AdmissionResponse.denied(f"{scale.metadata.name} cannot have {scale.spec.replicas} boards")
    return AdmissionResponse()


def nested(levels: int) -> JSONValue:
    value: JSONValue = "innermost"
    for _ in range(levels):
        value = {"in": value}
    return value


def shelf(name: str, note: str = "", boards: int = 1, **unknown: JSONValue) -> Shelf:
    spec: JSONObject = {"boards": boards, "note": note}
    manifest: JSONObject = {"metadata": {"name": name}, "spec": spec, **unknown}
    return from_json(Shelf, {"apiVersion": f"{GROUP}/v1", "kind": "Shelf", **manifest})


async def test_a_server_asks_about_all_that_happens_to_an_object(
    admin: Client, namespace: str, install: Install, running: Running, local_webhooks: LocalWebhooks
) -> None:
    await install(Shelf)
    client = admin.in_namespace(namespace)
    manager = Manager(admin, **local_webhooks.options)
    serve_webhooks(manager, annotate, check, sign, check_status, check_scale)
    async with running(manager), local_webhooks.installed(manager, admin, namespace=namespace):
        # What the type does not know is not touched: numbers keep their digits, and keys their characters.
        unknown: JSONObject = {
            "numbers": [2**53 + 1, -(2**63), 2**63 - 1, 0.1, 1e300, -2.5e-7, 3.0],
            "text": {"a/b~c": "~1", "": "é\u2028\x7f😀", "null": None, "empty": [{}, []]},
            "deep": nested(100),
        }
        created = await client.create(shelf("known", unknown=unknown))
        assert created.metadata.annotations == {"test.example.com/seen": "né ~0/1 😀"}
        assert created.spec.marks == {"~1/a~b/é": "~"}
        found = await client.get(Dynamic.of(f"{GROUP}/v1", "Shelf"), "known")
        assert found.content["unknown"] == unknown

        # Large objects, of which the patch stays small; an update is a review with two of them.
        large = await client.create(shelf("large", "x" * STORED))
        large.spec.boards = 2
        assert (await client.update(large)).spec.boards == 2
        assert (await client.create(shelf("huge", "x" * HUGE), dry_run=True)).metadata.annotations

        # The name that the server makes is there when the object is validated.
        generated = shelf("", boards=11)
        generated.metadata.generate_name = "made-"
        with pytest.raises(
            Invalid, match=rf'Shelf.{GROUP} "made-\w{{5}}" is invalid: spec.boards: Invalid value: 11: '
        ):
            await client.create(generated)

        # Dry runs are asked about, too.
        with pytest.raises(Forbidden, match="denied the request: CREATE as a dry run of try"):
            await client.create(shelf("try", "what is it"), dry_run=True)
        created.spec.note = "what is it"
        with pytest.raises(Forbidden, match="denied the request: UPDATE of known"):
            await client.patch(created)

        # Subresources have webhooks of their own.
        created = await client.get(created)
        created.status.books = 5
        created = await client.status.patch(created)
        assert (created.status.books, created.status.checked_by) == (5, "webhook")
        created.status.books = 4
        with pytest.raises(Invalid) as invalid:
            await client.status.patch(created)
        assert [cause.field for cause in invalid.value.status.causes] == ["status.books"]
        with pytest.raises(Forbidden, match="denied the request: known cannot have 11 boards"):
            await client.scale(created, replicas=11)
        await client.scale(created, replicas=3)

        # Many at once: each gets its own answer.
        wanted = [shelf(f"many-{number}", boards=number) for number in range(5, 17)]
        answers = await asyncio.gather(*map(client.create, wanted), return_exceptions=True)
        for number, answer in enumerate(answers, start=5):
            if number > 10:
                assert isinstance(answer, Invalid)
                assert f'"many-{number}" is invalid: spec.boards: Invalid value: {number}: ' in str(answer)
            else:
                assert isinstance(answer, Shelf)
                assert (answer.metadata.name, answer.spec.boards) == (f"many-{number}", number)


class TagSpec(Model):
    size: Annotated[int, Meta(ge=0)] = 0


@resource(f"{GROUP}/v1")
class Tag(Resource[TagSpec, None]):
    """Is asked about only when it has the labels that a webhook is for."""


@validates(Tag, path="/labelled", object_selector="colour in (red,blue),!old", name="labels.tags.example.com")
def deny_labelled(review: Review[Tag]) -> None:
    raise Denied("its labels are not taken")


@validates(
    Tag,
    path="/matched",
    match_conditions={"large": "object.spec.size > 10", "not-mine": "object.metadata.name != 'mine'"},
)
def deny_matched(review: Review[Tag]) -> None:
    raise Denied("it is too large")


@validates(Tag, path="/elsewhere", namespace_selector={"tags": "denied"})
def deny_elsewhere(review: Review[Tag]) -> None:
    raise Denied("nowhere")


@defaults(Tag, path="/first", reinvocation_policy="IfNeeded", name="a.tags.example.com")
def copy_size(review: Review[Tag]) -> None:
    review.object.metadata.annotations["size"] = str(review.object.spec.size)


@defaults(Tag, path="/second", name="b.tags.example.com")
def enlarge(review: Review[Tag]) -> None:
    review.object.spec.size += 1 if review.object.spec.size == 0 else 0


async def test_a_server_asks_when_the_decorator_says_so(
    admin: Client, namespace: str, install: Install, running: Running, local_webhooks: LocalWebhooks
) -> None:
    def tag(name: str, size: int = 1, **labels: str) -> Tag:
        return Tag(metadata=ObjectMeta(name=name, labels=labels), spec=TagSpec(size=size))

    await install(Tag)
    client = admin.in_namespace(namespace)
    manager = Manager(admin, **local_webhooks.options)
    serve_webhooks(manager, deny_labelled, deny_matched, deny_elsewhere, copy_size, enlarge)
    async with running(manager), local_webhooks.installed(manager, admin, namespace=namespace):
        with pytest.raises(Forbidden, match=r'"labels.tags.example.com" denied the request: its labels are not taken'):
            await client.create(tag("red", colour="red"))
        await client.create(tag("old", colour="red", old="yes"))
        await client.create(tag("green", colour="green"))
        with pytest.raises(Forbidden, match="denied the request: it is too large"):
            await client.create(tag("large", 11))
        await client.create(tag("mine", 11))
        # The first one is asked again about what the second one changed.
        created = await client.create(tag("empty", 0))
        assert (created.spec.size, created.metadata.annotations["size"]) == (1, "1")
