"""Admission of Widgets and Pods on kubewright: kubewright_webhooks webhooks, with the server in KUBECONFIG.

It does what controller_runtime/webhooks.go does, its peer: serves on WEBHOOK_PORT with the certificate in
WEBHOOK_CERT_DIR, without an API server, prints "serving", and ends with SIGTERM.
"""

from __future__ import annotations

import asyncio
import os

import uvloop

from bench.peers.widget import Widget
from kubewright import Client, FieldCause, Manager, Review, defaults, serve_webhooks, validates
from kubewright.api.core.v1 import Pod
from kubewright.manager.log import configure
from kubewright.manager.program import tune_collector
from kubewright.manager.signals import stop_on_signals

OWNER = "bench.example.com/owner"


@defaults(Widget)
def default_widget(review: Review[Widget]) -> None:
    """Fill in owner and priority."""
    widget = review.object
    if OWNER not in widget.metadata.annotations:
        widget.metadata.annotations[OWNER] = review.user.username or ""
    if not widget.spec.placement.priority_class:
        widget.spec.placement.priority_class = "low"


@validates(Widget)
def check_widget(review: Review[Widget]) -> list[FieldCause]:
    """Check sizes and images; volumes stay."""
    spec, errors = review.object.spec, []
    if not 0 <= spec.size <= 100:
        errors.append(FieldCause.invalid("spec.size", spec.size, "must be 0 to 100"))
    for index, container in enumerate(spec.containers):
        if ":" not in container.image:
            errors.append(FieldCause.invalid(f"spec.containers[{index}].image", container.image, "must have a tag"))
    if review.old is not None and review.old.spec.volumes != spec.volumes:
        errors.append(FieldCause.forbidden("spec.volumes", "may not be changed"))
    return errors


@defaults(Pod)
def default_pod(review: Review[Pod]) -> None:
    """Fill in the owner, and when images are pulled."""
    pod = review.object
    if OWNER not in pod.metadata.annotations:
        pod.metadata.annotations[OWNER] = review.user.username or ""
    for container in pod.spec.containers:
        if not container.image_pull_policy:
            container.image_pull_policy = "Always"


@validates(Pod)
def check_pod(review: Review[Pod]) -> list[FieldCause]:
    """Check images and limits; the service account stays."""
    spec, errors = review.object.spec, []
    for index, container in enumerate(spec.containers):
        if ":" not in (container.image or ""):
            errors.append(FieldCause.invalid(f"spec.containers[{index}].image", container.image, "must have a tag"))
        if not container.resources.limits.get("memory"):
            errors.append(FieldCause.required(f"spec.containers[{index}].resources.limits.memory"))
    if review.old is not None and review.old.spec.service_account_name != spec.service_account_name:
        errors.append(FieldCause.forbidden("spec.serviceAccountName", "may not be changed"))
    return errors


async def _say_when_serving(manager: Manager) -> None:
    await manager.webhooks_served.wait()
    print("serving", flush=True)


async def main() -> None:
    """Serve until SIGTERM."""
    configure()
    async with Client() as client:
        manager = Manager(
            client,
            metrics_address="127.0.0.1:0",
            webhook_address=f"127.0.0.1:{os.environ['WEBHOOK_PORT']}",
            webhook_cert_dir=os.environ["WEBHOOK_CERT_DIR"],
        )
        serve_webhooks(manager, default_widget, check_widget, default_pod, check_pod)
        manager.add(lambda: _say_when_serving(manager))
        tune_collector(manager)
        async with stop_on_signals(manager.stop):
            await manager.run()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
