from __future__ import annotations

import pytest
from operators.builtins import PodSet, annotate_pod, check_pod, setup
from operators.conftest import AsOperator

from kubewright import Client, Forbidden, Manager, ObjectMeta, Review, serve_webhooks
from kubewright.api.core.v1 import Container, Pod, PodSpec
from kubewright.testing import Install, LocalWebhooks, Running

ANNOTATION = "example-mutating-admission-webhook"


def pod(name: str, **annotations: str) -> Pod:
    spec = PodSpec(containers=[Container(name="app", image="app:1")])
    return Pod(metadata=ObjectMeta(name=name, annotations=annotations), spec=spec)


async def test_item_18_the_annotator_satisfies_the_validator_which_denies_alone(
    admin: Client,
    namespace: str,
    install: Install,
    running: Running,
    as_operator: AsOperator,
    local_webhooks: LocalWebhooks,
) -> None:
    await install(PodSet)
    client = admin.in_namespace(namespace)
    manager = Manager(await as_operator(setup), namespaces=[namespace], **local_webhooks.options)
    setup(manager)
    async with running(manager), local_webhooks.installed(manager, admin, namespace=namespace):
        plain = await client.create(pod("plain"))
        assert plain.metadata.annotations == {ANNOTATION: "foo"}
        generated = pod("", team="blue")
        generated.metadata.generate_name = "other-"
        other = await client.create(generated)
        assert other.metadata.annotations == {ANNOTATION: "foo", "team": "blue"}
        del other.metadata.annotations[ANNOTATION]
        assert (await client.patch(other)).metadata.annotations == {ANNOTATION: "foo", "team": "blue"}

    manager = Manager(admin, **local_webhooks.options)
    serve_webhooks(manager, check_pod)
    async with running(manager), local_webhooks.installed(manager, admin, namespace=namespace):
        with pytest.raises(Forbidden, match=f"denied the request: missing annotation {ANNOTATION}"):
            await client.create(pod("denied"))
        plain.metadata.annotations[ANNOTATION] = "bar"
        with pytest.raises(Forbidden, match=f'annotation {ANNOTATION} is "bar": expected "foo"'):
            await client.patch(plain)
        # A deletion is not asked about.
        await client.delete(plain, grace_period=0)


def test_the_annotator_keeps_other_annotations() -> None:
    review = Review(pod("it", team="blue"))
    annotate_pod.function(review)
    assert review.object.metadata.annotations == {"team": "blue", ANNOTATION: "foo"}
    check_pod.function(review)


def test_the_pods_of_the_cluster_itself_are_left_out() -> None:
    for webhook in (annotate_pod, check_pod):
        assert webhook.namespace_selector is not None
        (requirement,) = webhook.namespace_selector.match_expressions
        assert (requirement.operator, requirement.values) == ("NotIn", ["kube-system"])
