"""The step that makes a Devbox reachable: a pipeline of its own, with a step for each way.

The headless Service is named by `status.network.uniqueID`; an SSH gateway, which is another program, finds it by its
labels. It has no ports and selects the pod. Node ports stay as long as the Service does: over Paused and Stopped.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubewright.api.core.v1 import ContainerPort, Service, ServicePort, ServiceSpec
from kubewright.patterns import Done, Pipeline, step

from .context import SYNCED, DevboxContext
from .names import labels_of, metadata_of, service_of
from .parts import ensure_part, is_part
from .types import SSH_PORT, Devbox

NOT_SUPPORTED = Done(
    "tailnets are not supported: the Devbox is reached by its headless Service", reason="NotSupported", degraded=True
)


def is_tailnet(context: DevboxContext) -> bool:
    """Whether the Devbox asks for a tailnet."""
    return context.object.spec.network.type == "Tailnet"


def is_ssh_gate(context: DevboxContext) -> bool:
    """Whether the Devbox is reached by a gateway."""
    return context.object.spec.network.type == "SSHGate"


@step("HeadlessServiceSynced")
async def headless(context: DevboxContext) -> Done:
    """A name for the pod, whatever the type of the network."""
    devbox = context.object
    await ensure_part(
        context,
        Service(
            metadata=metadata_of(devbox, devbox.status.network.unique_id),
            spec=ServiceSpec(cluster_ip="None", selector=labels_of(devbox.metadata.name)),
        ),
    )
    return SYNCED


@step("TailnetSynced", when=is_tailnet)
async def tailnet(context: DevboxContext) -> Done:
    """Nothing: tailnets are stored and not supported, and the condition says so."""
    return NOT_SUPPORTED


@step("SSHGateSynced", when=is_ssh_gate)
async def ssh_gate(context: DevboxContext) -> Done:
    """Nothing: the gateway needs the headless Service and the Secret."""
    return SYNCED


@step("NodePortSynced")
async def node_port(context: DevboxContext) -> Done:
    """The Service with node ports, unless the type of the network is another one or the Devbox is shut down."""
    devbox, status = context.object, context.object.status.network
    if devbox.spec.network.type != "NodePort" or devbox.spec.state == "Shutdown":
        name, namespace = service_of(devbox), devbox.metadata.namespace
        found = await context.client.find(Service, name, namespace=namespace)
        if found is None and status.node_port:  # it may have lost its labels, and is hidden from the cache
            found = await context.live.find(Service, name, namespace=namespace)
        if found is not None and is_part(devbox, found):
            await context.client.delete(found, uid=found.metadata.uid, missing_ok=True)
        status.node_port = 0
        return SYNCED
    spec = ServiceSpec(type="NodePort", selector=labels_of(devbox.metadata.name), ports=list(service_ports(devbox)))
    service = await ensure_part(context, Service(metadata=metadata_of(devbox, service_of(devbox)), spec=spec))
    first = spec.ports[0]
    status.node_port = next((port.node_port or 0 for port in service.spec.ports if port.name == first.name), 0)
    return SYNCED


network_pipeline = Pipeline[DevboxContext](headless, tailnet, ssh_gate, node_port, fail_fast=True, ready=None)


@step("NetworkSynced")
async def network(context: DevboxContext) -> Done:
    """Make the Devbox reachable, and report how."""
    await network_pipeline.run(context)
    context.object.status.network.type = context.object.spec.network.type
    return NOT_SUPPORTED if is_tailnet(context) else SYNCED


def service_ports(devbox: Devbox) -> Iterator[ServicePort]:
    """The ports of the container that have node ports, each once; the first is that of SSH."""
    seen = set[tuple[int, str]]()
    given = [*devbox.spec.config.ports, *devbox.spec.network.extra_ports]
    for port in given or [ContainerPort(name="devbox-ssh-port", container_port=SSH_PORT)]:
        protocol, number = port.protocol or "TCP", port.container_port
        if (number, protocol) not in seen:
            seen.add((number, protocol))
            yield ServicePort(name=port_name(port), port=number, protocol=protocol, target_port=number)


def port_name(port: ContainerPort) -> str:
    """What a port is called in the Service, where all of them have names."""
    return port.name or f"{(port.protocol or 'TCP').lower()}-{port.container_port}"
