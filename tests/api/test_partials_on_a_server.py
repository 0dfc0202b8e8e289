"""What a partial object claims, by the managed fields of both servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest
from tests.api.test_partials import Limits, Widget, WidgetSpec

from kubewright.api.codec import decode_json
from kubewright.api.core.v1 import Container, PodTemplate
from kubewright.api.markers import JSONValue
from kubewright.api.partials import partial
from kubewright.api.resources import Object
from kubewright.client import Client
from kubewright.client.errors import Conflict


def claimed(obj: Object, manager: str) -> JSONValue:
    """The fields that a manager owns."""
    (entry,) = [entry for entry in obj.metadata.managed_fields if entry.manager == manager]
    return decode_json(entry.fields_v1)


async def test_an_apply_claims_the_fields_that_were_set_and_no_others(
    admin: Client, namespace: str, install: Callable[[type[Object]], Awaitable[None]]
) -> None:
    await install(Widget)
    whole = Widget(spec=WidgetSpec(image="app:1", limits=Limits(cpu=5)))
    whole.metadata.name, whole.metadata.namespace = "web", namespace
    await admin.create(whole)

    scaled = partial(Widget, name="web", namespace=namespace)
    scaled.spec.replicas = 7
    scaled.spec.limits.memory = 9
    applied = await admin.apply(scaled, field_manager="scaler", force=True)

    assert claimed(applied, "scaler") == {"f:spec": {"f:replicas": {}, "f:limits": {"f:memory": {}}}}
    assert (applied.spec.image, applied.spec.replicas) == ("app:1", 7)
    assert (applied.spec.limits.cpu, applied.spec.limits.memory) == (5, 9)

    reported = partial(Widget, name="web", namespace=namespace)
    reported.status.phase = "Ready"
    applied = await admin.status.apply(reported, field_manager="reporter", force=True)
    assert claimed(applied, "reporter") == {"f:status": {"f:phase": {}}}


async def test_a_field_that_is_no_longer_set_is_released(
    admin: Client, namespace: str, install: Callable[[type[Object]], Awaitable[None]]
) -> None:
    await install(Widget)
    web = partial(Widget, name="web", namespace=namespace)
    web.spec.image = "app:1"
    web.spec.args.append("fast")
    await admin.apply(web, field_manager="one")

    web = partial(Widget, name="web", namespace=namespace)
    web.spec.image = "app:1"
    applied = await admin.apply(web, field_manager="one")

    assert claimed(applied, "one") == {"f:spec": {"f:image": {}}}
    assert applied.spec.args == ["run"]  # the default of the definition
    other = partial(Widget, name="web", namespace=namespace)
    other.spec.image = "app:2"
    with pytest.raises(Conflict):
        await admin.apply(other, field_manager="two")


async def test_only_the_set_fields_of_a_list_item_are_claimed(admin: Client, namespace: str) -> None:
    whole = partial(PodTemplate, name="web", namespace=namespace)
    whole.template.spec.containers.append(partial(Container, name="app", image="app:1"))
    await admin.apply(whole, field_manager="one")

    changed = partial(PodTemplate, name="web", namespace=namespace)
    changed.template.spec.containers.append(partial(Container, name="app", image_pull_policy="Always"))
    applied = await admin.apply(changed, field_manager="two", force=True)

    assert claimed(applied, "two") == {
        "f:template": {
            "f:spec": {"f:containers": {'k:{"name":"app"}': {".": {}, "f:name": {}, "f:imagePullPolicy": {}}}}
        }
    }
    assert [container.image for container in applied.template.spec.containers] == ["app:1"]
