"""Patches on every control plane, compared with what our own functions make of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kubewright.api.apps.v1 import Deployment
from kubewright.api.dynamic import Dynamic
from kubewright.api.markers import JSONObject, JSONValue
from kubewright.api.meta import ObjectMeta
from kubewright.api.resources import Object
from kubewright.client import Client, JSONPatch, MergePatch, StrategicMergePatch
from kubewright.client.errors import APIError, Invalid
from kubewright.client.patch import Patch
from kubewright.controlplane.embedded.apimachinery.document import at, items
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.apimachinery.structure import structure_of
from kubewright.controlplane.embedded.patch.json_patch import apply_json_patch
from kubewright.controlplane.embedded.patch.merge_patch import apply_merge_patch
from kubewright.controlplane.embedded.patch.strategic import apply_strategic_patch

T = TypeVar("T")
P = ParamSpec("P")
AnyWidget = Dynamic.of("example.com/v1", "Widget")
AnyDeployment = Dynamic.of("apps/v1", "Deployment")

names = st.sampled_from(["a", "b", "c"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(0, 3), st.sampled_from(["", "x"]))
# No null in a list: kube-apiserver panics when a `test` operation compares one.
values: st.SearchStrategy[JSONValue] = st.recursive(
    scalars,
    lambda inner: st.dictionaries(names, inner) | st.lists(inner.filter(lambda value: value is not None), max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(names, values)


def examples(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """The same examples in every run."""
    found: list[T] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(example: T) -> None:
        found.append(example)

    collect()
    return found


def outcome(apply: Callable[P, JSONObject], *args: P.args, **kwargs: P.kwargs) -> JSONObject | StatusError:
    """What a patch makes of a document, or why it makes nothing of it."""
    try:
        return apply(*args, **kwargs)
    except StatusError as error:
        return error


async def widget(client: Client, spec: JSONObject) -> Dynamic:
    return await client.create(AnyWidget(metadata=ObjectMeta(generate_name="w-"), content={"spec": spec}))


async def refused(client: Client, target: Object, patch: Patch, expected: StatusError) -> None:
    with pytest.raises(APIError) as caught:
        await client.patch(target, patch)
    status = caught.value.status
    assert (status.code, status.reason, status.message) == (expected.code, expected.reason, expected.message), patch


paths = st.lists(st.sampled_from(["a", "b", "c", "0", "1", "-1", "-", "~1"]), max_size=3).map(
    lambda steps: "/".join(["/spec", *steps])
)
changes: st.SearchStrategy[JSONObject] = st.one_of(
    st.fixed_dictionaries({"op": st.sampled_from(["add", "replace"]), "path": paths, "value": values}),
    st.fixed_dictionaries({"op": st.just("remove"), "path": paths}),
    st.fixed_dictionaries({"op": st.sampled_from(["move", "copy"]), "path": paths, "from": paths}),
)
guesses: st.SearchStrategy[JSONObject] = st.fixed_dictionaries({"op": st.just("test"), "path": paths, "value": values})


@st.composite
def json_patches(draw: st.DrawFn) -> tuple[JSONObject, list[JSONObject]]:
    """A spec and operations; those that test come first and some of them hold."""
    spec = draw(objects)
    known: list[JSONObject] = [{"op": "test", "path": f"/spec/{name}", "value": spec[name]} for name in spec]
    operations = draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
    return spec, [*operations, *draw(st.lists(guesses, max_size=1)), *draw(st.lists(changes, max_size=3))]


@pytest.mark.usefixtures("widgets")
async def test_json_patches_do_what_ours_do(client: Client) -> None:
    applied = 0
    for spec, operations in examples(json_patches(), 150):
        expected = outcome(apply_json_patch, {"spec": spec}, [*operations])
        target = await widget(client, spec)
        if isinstance(expected, StatusError):
            await refused(client, target, JSONPatch(operations), expected)
        elif isinstance(expected.get("spec", {}), dict):  # The schema wants an object.
            patched = await client.patch(target, JSONPatch(operations))
            assert patched.get("spec") == expected.get("spec"), (spec, operations)
            applied += 1
    assert applied >= 40


@pytest.mark.usefixtures("widgets")
async def test_merge_patches_do_what_ours_do(client: Client) -> None:
    for spec, patch in examples(st.tuples(objects, objects), 100):
        patched = await client.patch(await widget(client, spec), MergePatch({"spec": patch}))
        assert patched["spec"] == apply_merge_patch({"spec": spec}, {"spec": patch})["spec"], (spec, patch)


DEPLOYMENT: JSONObject = {
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    {"name": "a", "image": "x", "env": [{"name": "E", "value": "1"}, {"name": "F", "value": "2"}]},
                    {"name": "b", "image": "x", "ports": [{"containerPort": 80}, {"containerPort": 81}]},
                    {"name": "c", "image": "x", "args": ["1", "2"]},
                ],
                "volumes": [{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "settings"}}],
                "tolerations": [{"key": "a", "operator": "Exists"}],
                "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["one"]}],
            },
        },
    },
}


@st.composite
def list_patches(
    draw: st.DrawFn,
    name: str,
    key: str,
    keys: st.SearchStrategy[JSONValue],
    contents: st.SearchStrategy[Mapping[str, JSONValue]],
) -> JSONObject:
    """The part of a patch that is about one list: changed, deleted and new items, and sometimes an order."""
    changed: list[JSONValue] = []
    order: list[JSONValue] = []
    for value in draw(st.lists(keys, unique=True, max_size=4)):
        what = draw(st.sampled_from(["change", "change", "delete", "order"]))
        if what == "delete":
            changed.append({key: value, "$patch": "delete"})
            continue
        order.append({key: value})
        if what == "change":
            changed.append({key: value, **draw(contents)})
    mistake = draw(st.integers(0, 19))
    if mistake == 0:
        changed.append({"$patch": "replace"})
    elif mistake == 1:
        changed.append({"and": "no key"})
    elif mistake == 2:
        order.reverse()
    if draw(st.booleans()):
        return {name: changed}
    return {name: changed, f"$setElementOrder/{name}": order}


texts: st.SearchStrategy[JSONValue] = st.sampled_from(["x", "y"])
environment = list_patches(
    "env", "name", st.sampled_from(["E", "F", "G"]), st.fixed_dictionaries({"value": texts | st.none()})
)
ports = list_patches("ports", "containerPort", st.sampled_from([80, 81, 82]), st.fixed_dictionaries({"name": texts}))
arguments = st.fixed_dictionaries({"args": st.lists(texts, max_size=2) | st.none()})
containers = list_patches(
    "containers",
    "name",
    st.sampled_from(["a", "b", "c", "d"]),
    st.tuples(texts, st.one_of(environment, ports, arguments)).map(lambda parts: {"image": parts[0], **parts[1]}),
)
volumes = list_patches(
    "volumes",
    "name",
    st.sampled_from(["v", "w", "u"]),
    st.sampled_from(
        [
            {"$retainKeys": ["name", "emptyDir"], "emptyDir": {}},
            {"$retainKeys": ["name", "configMap"], "configMap": {"name": "other"}},
            {"$retainKeys": ["name"], "configMap": {"name": "other"}},
            {"emptyDir": {}},
        ]
    ),
)
tolerations = st.fixed_dictionaries(
    {"tolerations": st.sampled_from([None, [], [{"key": "b", "operator": "Exists"}], [{"$patch": "replace"}]])}
)
aliases = list_patches(
    "hostAliases",
    "ip",
    st.sampled_from(["10.0.0.1", "10.0.0.2"]),
    st.fixed_dictionaries({}, optional={"hostnames": st.just(["two"])}),
)
finalizers = st.fixed_dictionaries(
    {},
    optional={
        "$deleteFromPrimitiveList/finalizers": st.lists(st.sampled_from(["x.y/a", "x.y/b"]), unique=True),
        "$setElementOrder/finalizers": st.permutations(["x.y/a", "x.y/b", "x.y/c"]),
    },
)
# One list at a time: of several mistakes kube-apiserver reports any.
strategic_patches: st.SearchStrategy[JSONObject] = st.builds(
    lambda metadata, template: {"metadata": metadata, "spec": {"template": {"spec": template}}},
    finalizers,
    st.one_of(containers, containers, volumes, tolerations, aliases),
)

DEFAULTED = {"terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "protocol", "defaultMode"}


def plain(value: JSONValue) -> JSONValue:
    """Without what is absent, empty or set by default, and without directives that count as unknown fields."""
    if isinstance(value, dict):
        kept = {name: plain(item) for name, item in value.items() if name not in DEFAULTED and not name.startswith("$")}
        return {name: item for name, item in kept.items() if item not in (None, {}, [])}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value


async def test_strategic_merge_patches_do_what_ours_do(client: Client) -> None:
    applied = refusals = 0
    metadata = ObjectMeta(name="web", finalizers=["x.y/a", "x.y/b", "x.y/c"])
    deployment = await client.create(AnyDeployment(metadata=metadata, content=DEPLOYMENT))
    before: JSONObject = {"metadata": {"finalizers": [*metadata.finalizers]}, "spec": deployment["spec"]}
    for patch in examples(strategic_patches, 250):
        expected = outcome(apply_strategic_patch, before, patch, structure_of(Deployment))
        if isinstance(expected, StatusError):
            await refused(client, deployment, StrategicMergePatch(patch), expected)
            refusals += 1
            continue
        try:
            patched = await client.patch(deployment, StrategicMergePatch(patch), dry_run=True)
        except Invalid:  # It applies, but what comes out is no valid deployment.
            continue
        assert plain(patched.get("spec", "template", "spec")) == plain(at(expected, "spec", "template", "spec")), patch
        assert patched.metadata.finalizers == items(expected, "metadata", "finalizers"), patch
        applied += 1
    assert applied >= 100
    assert refusals >= 20
    await client.patch(deployment, MergePatch({"metadata": {"finalizers": None}}))
