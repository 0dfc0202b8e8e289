"""The objects both sides decode: a pod of 5 KB as a server sends it, and a custom resource of 2 KB."""

from __future__ import annotations

import json
from pathlib import Path


def write(directory: Path) -> None:
    """Put `pod.json` and `widget.json` into `directory`."""
    (directory / "pod.json").write_text(json.dumps(_pod(), separators=(",", ":")))
    (directory / "widget.json").write_text(json.dumps(_widget(), separators=(",", ":")))


def _metadata(name: str, managers: list[object]) -> dict[str, object]:
    return {
        "name": name,
        "generateName": "web-6d8f9c7b5-",
        "namespace": "default",
        "uid": "2f0e2a51-9d0b-4d8a-b0d9-5f2f6f3d3c11",
        "resourceVersion": "184467",
        "generation": 3,
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "web", "pod-template-hash": "6d8f9c7b5", "app.kubernetes.io/managed-by": "kubewright"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web-6d8f9c7b5",
                "uid": "0a1b2c3d-1111-2222-3333-444455556666",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": managers,
    }


def _manager(name: str, fields: object, subresource: str = "") -> dict[str, object]:
    entry: dict[str, object] = {
        "manager": name,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return entry | ({"subresource": subresource} if subresource else {})


def _pod() -> dict[str, object]:
    container_fields: dict[str, object] = {
        f"f:{name}": {}
        for name in ("image", "imagePullPolicy", "name", "resources", "terminationMessagePath", "env", "ports")
    }
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _metadata(
            "web-6d8f9c7b5-x2x7k",
            [
                _manager(
                    "kube-controller-manager",
                    {
                        "f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:app": {}}},
                        "f:spec": {
                            "f:containers": {
                                'k:{"name":"web"}': container_fields,
                                'k:{"name":"proxy"}': container_fields,
                            },
                            "f:dnsPolicy": {},
                            "f:restartPolicy": {},
                            "f:schedulerName": {},
                            "f:securityContext": {},
                        },
                    },
                ),
                _manager(
                    "kubelet",
                    {
                        "f:status": {
                            "f:conditions": {
                                f'k:{{"type":"{name}"}}': {"f:lastProbeTime": {}, "f:status": {}, "f:type": {}}
                                for name in conditions
                            },
                            "f:containerStatuses": {},
                            "f:phase": {},
                        }
                    },
                    "status",
                ),
            ],
        ),
        "spec": {
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}],
            "containers": [
                {
                    "name": name,
                    "image": f"registry.example.com/{name}:1.2.3",
                    "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                    "env": [{"name": "MODE", "value": "production"}, {"name": "LEVEL", "value": "info"}],
                    "resources": {
                        "limits": {"cpu": "500m", "memory": "256Mi"},
                        "requests": {"cpu": "100m", "memory": "128Mi"},
                    },
                    "volumeMounts": [{"name": "token", "readOnly": True, "mountPath": "/var/run/secrets"}],
                    "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 5},
                    "terminationMessagePath": "/dev/termination-log",
                    "imagePullPolicy": "IfNotPresent",
                }
                for name in ("web", "proxy")
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "nodeName": "node-1",
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                {"type": name, "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"} for name in conditions
            ],
            "hostIP": "10.0.0.1",
            "podIP": "10.1.0.7",
            "podIPs": [{"ip": "10.1.0.7"}],
            "startTime": "2026-01-01T00:00:01Z",
            "containerStatuses": [
                {
                    "name": name,
                    "state": {"running": {"startedAt": "2026-01-01T00:00:04Z"}},
                    "ready": True,
                    "restartCount": 0,
                    "image": f"registry.example.com/{name}:1.2.3",
                    "imageID": "sha256:0123456789abcdef",
                    "containerID": "containerd://0123456789abcdef",
                    "started": True,
                }
                for name in ("web", "proxy")
            ],
            "qosClass": "Burstable",
        },
    }


def _widget() -> dict[str, object]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": _metadata("widget-0042", [_manager("kubewright", {"f:spec": {"f:size": {}, "f:parts": {}}})]),
        "spec": {
            "size": 3,
            "color": "green",
            "parts": [{"name": f"part-{n}", "weight": n, "material": "steel", "tested": True} for n in range(6)],
            "options": {f"option-{n}": f"value-{n}" for n in range(8)},
        },
        "status": {
            "ready": 3,
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "reason": "AllPartsFitted",
                    "message": "all parts are where they belong",
                    "lastTransitionTime": "2026-01-01T00:00:05Z",
                    "observedGeneration": 3,
                }
            ],
        },
    }
