"""Server-side apply of just some fields, of types with required fields and defaults."""

from typing import Annotated

from kubewright import Client, Model, Resource, resource
from kubewright.api import Immutable, Rule, partial
from kubewright.api.apps.v1 import Deployment
from kubewright.api.core.v1 import Container


class WidgetSpec(Model, rules=[Rule("self.replicas < 100", message="too many")]):
    image: str
    zone: Annotated[str | None, Immutable()] = None
    replicas: int = 3


class WidgetStatus(Model):
    phase: str = "Pending"


@resource("example.com/v1", rules=[Rule("self.metadata.name != 'admin'")])
class Widget(Resource[WidgetSpec, WidgetStatus]):
    """A widget."""


async def scale(client: Client) -> int:
    widget = partial(Widget, name="web", namespace="default")
    widget.spec.replicas = 5
    applied: Widget = await client.apply(widget)

    deployment = partial(Deployment, name="web", namespace="default")
    deployment.spec.template.spec.containers.append(partial(Container, name="app", image="app:2"))
    await client.apply(deployment)
    return applied.spec.replicas
