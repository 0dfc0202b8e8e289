"""A virtual day of an embedded control plane with all its controllers, in which every object is as it should be."""

from __future__ import annotations

import asyncio
import time

import yaml

from kubewright.api.apps.v1 import DaemonSet, Deployment, StatefulSet
from kubewright.api.batch.v1 import Job
from kubewright.api.codec import from_json
from kubewright.api.dynamic import Dynamic
from kubewright.client import Client
from kubewright.client.wait import Field, condition
from kubewright.controlplane import ControlPlane
from kubewright.testing.virtual_time import run_virtual

HOUR, DAY = 3600.0, 24 * 3600.0

OBJECTS = """
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {replicas: 3, selector: {matchLabels: {app: web}},
 template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: app}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 2, serviceName: db,
 selector: {matchLabels: {app: db}},
 template: {metadata: {labels: {app: db}}, spec: {containers: [{name: main, image: app}]}},
 volumeClaimTemplates: [{metadata: {name: data},
  spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: log}, spec: {selector: {matchLabels: {app: log}},
 template: {metadata: {labels: {app: log}}, spec: {containers: [{name: main, image: app}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: once},
 spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: app}]}}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: yearly}, spec: {schedule: 0 0 1 1 *,
 jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: app}]}}}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: web}, ports: [{port: 80}]}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web},
 spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: many}, spec: {hard: {pods: "100"}}}
"""


def settled_day(workloads: bool) -> float:
    """The seconds of CPU that the day costs, on two nodes."""

    async def main() -> float:
        async with ControlPlane.embedded(nodes=2) as plane, plane.client() as admin:
            if workloads:
                await create_workloads(admin.in_namespace("default"))
            # Events are gone after an hour.
            await asyncio.sleep(2 * HOUR)
            before = time.process_time()
            await asyncio.sleep(DAY)
            return time.process_time() - before

    return run_virtual(main)


async def create_workloads(client: Client) -> None:
    """Return when they work. Afterwards there is nothing to do for any controller."""
    for document in yaml.safe_load_all(OBJECTS):
        plural = f"{document['kind'].lower()}s"
        kind = Dynamic.of(document["apiVersion"], document["kind"], plural=plural, namespaced=True)
        await client.create(from_json(kind, document))
    await client.wait_for(Deployment, "web", condition("Available"))
    await client.wait_for(StatefulSet, "db", Field("status.readyReplicas").equals(2))
    await client.wait_for(DaemonSet, "log", Field("status.numberReady").equals(2))
    await client.wait_for(Job, "once", condition("Complete"))
