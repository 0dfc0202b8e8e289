"""The hash of a pod template, which names what belongs to it, is the same by kube-controller-manager and by ours."""

from __future__ import annotations

import pytest
import yaml
from tests.conformance.workload_steps import eventually

from kubewright.api.apps.v1 import ControllerRevision, DaemonSet, Deployment, ReplicaSet
from kubewright.api.codec import from_json
from kubewright.api.core.v1 import PodTemplateSpec
from kubewright.api.markers import JSONObject
from kubewright.client import Client
from kubewright.controlplane.controllers.template_hash import template_hash

# Pointers to nothing and to zeros, empty lists and maps, quantities of all sizes, ports by number and by name.
_SPECS = """
plain: {containers: [{name: a, image: web}]}
empty:
  securityContext: {}
  nodeSelector: {}
  tolerations: []
  volumes: [{name: scratch, emptyDir: {}}]
  containers: [{name: a, image: web, command: [], resources: {}, securityContext: {}, env: [{name: X, value: ""}]}]
zeros:
  terminationGracePeriodSeconds: 0
  enableServiceLinks: false
  hostUsers: true
  securityContext: {runAsUser: 0, fsGroup: 0, supplementalGroups: [0, 1], sysctls: [{name: a.b, value: "0"}]}
  containers: [{name: a, image: web, securityContext: {privileged: false, capabilities: {drop: [ALL]}}}]
quantities:
  overhead: null
  containers:
  - name: a
    image: web
    resources:
      requests: {cpu: 100m, memory: 64Mi, ephemeral-storage: 1000Ki, example.com/x: "1"}
      limits: {cpu: "2", memory: 1Gi, example.com/x: "1"}
  - name: b
    image: web
    resources: {requests: {cpu: 0.5, memory: 1.5Gi}, limits: {cpu: 1500m, memory: "2000000000", ephemeral-storage: 5G}}
  - name: c
    image: web
    resources:
      requests: {cpu: "0", memory: 1e3}
      limits: {cpu: 1e1, memory: 12E, ephemeral-storage: 123456789123456789}
  - {name: d, image: web, resources: {limits: {memory: 1024, ephemeral-storage: 8Ti, cpu: 1m}}}
  - {name: e, image: web, resources: {limits: {memory: 100Ti, ephemeral-storage: 2Pi, cpu: 1.001}}}
  volumes:
  - {name: memory, emptyDir: {medium: Memory, sizeLimit: 16Mi}}
  - name: claimed
    ephemeral:
      volumeClaimTemplate:
        metadata: {labels: {a: b}, annotations: {c: "d e"}}
        spec: {accessModes: [ReadWriteOnce], storageClassName: "", resources: {requests: {storage: 3Gi}}}
ports:
  containers:
  - name: a
    image: web
    ports: [{containerPort: 80, name: http}, {containerPort: 53, protocol: UDP, hostIP: 127.0.0.1}]
    livenessProbe: {httpGet: {port: http, path: /x, httpHeaders: [{name: A, value: b}]}, initialDelaySeconds: 3}
    readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 1}
    startupProbe: {grpc: {port: 9000, service: ""}, terminationGracePeriodSeconds: 5}
    lifecycle: {preStop: {exec: {command: [sh, -c, "sleep 1 && echo <done>"]}}, postStart: {sleep: {seconds: 0}}}
places:
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b, c]}]}]
      preferredDuringSchedulingIgnoredDuringExecution:
      - {weight: 5, preference: {matchFields: [{key: metadata.name, operator: In, values: [x]}]}}
    podAntiAffinity:
      preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 1
        podAffinityTerm:
          topologyKey: zone
          labelSelector: {matchLabels: {x: y}, matchExpressions: [{key: z, operator: Exists}]}
          namespaceSelector: {}
  topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {}}]
  tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 0}, {operator: Exists}]
  nodeSelector: {b: "2", a: "1"}
  hostAliases: [{ip: 1.2.3.4, hostnames: [a, b]}]
  dnsPolicy: None
  dnsConfig: {nameservers: [1.1.1.1], options: [{name: ndots, value: "2"}, {name: rotate}]}
  readinessGates: [{conditionType: example.com/ready}]
  schedulingGates: [{name: example.com/wait}]
  containers: [{name: a, image: web}]
sources:
  serviceAccountName: robot
  automountServiceAccountToken: false
  shareProcessNamespace: true
  initContainers: [{name: first, image: "busybox:1.36", restartPolicy: Always}]
  imagePullSecrets: [{name: one}]
  containers:
  - name: a
    image: "registry.example.com/web@sha256:0123456789012345678901234567890123456789012345678901234567890123"
    envFrom: [{configMapRef: {name: c, optional: true}, prefix: P_}, {secretRef: {name: s}}]
    env:
    - {name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: B, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}}
    - {name: C, valueFrom: {resourceFieldRef: {resource: requests.memory}}}
    - {name: D, valueFrom: {secretKeyRef: {name: s, key: k, optional: false}}}
    volumeMounts:
    - {name: all, mountPath: /x, readOnly: true, subPath: a}
    - {name: host, mountPath: /y, mountPropagation: HostToContainer}
  volumes:
  - name: all
    projected:
      defaultMode: 256
      sources:
      - {secret: {name: s}}
      - {serviceAccountToken: {path: t, audience: a}}
      - {downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}
  - {name: host, hostPath: {path: /x}}
  - {name: secret, secret: {secretName: s, items: [{key: a, path: b, mode: 0}]}}
  - {name: config, configMap: {name: c, defaultMode: 0}}
  - {name: claim, persistentVolumeClaim: {claimName: c}}
  - {name: csi, csi: {driver: csi.example.com, volumeAttributes: {b: "1", a: "2"}}}
  - {name: nfs, nfs: {server: s, path: /x}}
"""
_METADATA: dict[str, JSONObject] = {
    "plain": {"labels": {"app": "x"}},
    "empty": {"labels": {"app": "x"}, "annotations": {}},
    "zeros": {
        "labels": {"app": "x"},
        "annotations": {"note": 'Ünï ☃ "quoted"\n', "kubectl.kubernetes.io/restartedAt": "1"},
    },
}


@pytest.mark.parametrize("kind", [Deployment, DaemonSet])
async def test_templates_of_every_shape_have_kube_controller_managers_hash(
    client: Client, kind: type[Deployment | DaemonSet]
) -> None:
    templates: dict[str, PodTemplateSpec] = {}
    for name, spec in yaml.safe_load(_SPECS).items():
        metadata = _METADATA.get(name, {"labels": {"app": "x", "name": name}})
        template: JSONObject = {"metadata": metadata, "spec": spec}
        if kind is DaemonSet:
            spec["nodeSelector"] = {"there": "is-none"}
        given: JSONObject = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
        if kind is Deployment:
            given["replicas"] = 0
        made = await client.create(from_json(kind, {"metadata": {"name": name}, "spec": given}))
        templates[name] = made.spec.template
    expected = {f"{name}-{template_hash(template, None)}" for name, template in templates.items()}

    owned = ReplicaSet if kind is Deployment else ControllerRevision

    async def names() -> set[str]:
        return {one.metadata.name for one in await client.list(owned)}

    assert await eventually(names, lambda found: len(found) >= len(expected)) == expected
