"""What is sent: reviews of a Widget of 1 KB and of a pod of 10 KB, and the certificate that is trusted."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from kubewright.controlplane.certificates import CertificateAuthority

USER = "system:serviceaccount:kube-system:replicaset-controller"
SIZES = {"widget": 1024, "pod": 10 * 1024}
_RESOURCES = {"widget": ("bench.example.com", "Widget", "widgets"), "pod": ("", "Pod", "pods")}


def write(directory: Path) -> None:
    """Put the certificates and the reviews into `directory`."""
    authority = CertificateAuthority()
    pair = authority.server("webhooks", hosts={"127.0.0.1"})
    (directory / "ca.pem").write_text(authority.certificate)
    (directory / "tls.crt").write_text(pair.certificate)
    (directory / "tls.key").write_text(pair.key)
    for kind, make in (("widget", _widget), ("pod", _pod)):
        new = _sized(make(), SIZES[kind])
        stored = copy.deepcopy(new)
        stored["metadata"]["annotations"]["bench.example.com/owner"] = USER
        if kind == "widget":
            stored["spec"]["placement"]["priorityClass"] = "low"
        for container in stored["spec"]["containers"] if kind == "pod" else ():
            container["imagePullPolicy"] = "Always"
        changed = copy.deepcopy(stored)
        changed["metadata"]["labels"]["touched"] = "yes"
        reviews = {
            "mutate-create": _review(kind, "CREATE", new, None),
            "mutate-update": _review(kind, "UPDATE", changed, stored),
            "validate-create": _review(kind, "CREATE", stored, None),
            "validate-update": _review(kind, "UPDATE", changed, stored),
        }
        for name, review in reviews.items():
            review["request"]["uid"] = f"{kind}-{name}"
            (directory / f"{kind}-{name}.json").write_bytes(_encode(review))


def _review(kind: str, operation: str, new: object, old: object) -> dict[str, Any]:
    group, name, plural = _RESOURCES[kind]
    options = "CreateOptions" if operation == "CREATE" else "UpdateOptions"
    gvk = {"group": group, "version": "v1", "kind": name}
    gvr = {"group": group, "version": "v1", "resource": plural}
    request = {
        "uid": "",
        "kind": gvk,
        "resource": gvr,
        "requestKind": gvk,
        "requestResource": gvr,
        "name": "web-6d8f9c7b5-x2x7k",
        "namespace": "default",
        "operation": operation,
        "userInfo": {
            "username": USER,
            "uid": "4c5e6d1a-3c55-4d9e-8e0c-9d5d0f3f1a22",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": ["JTI=2f0e2a51-9d0b-4d8a-b0d9-5f2f6f3d3c11"]},
        },
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": options, "apiVersion": "meta.k8s.io/v1"},
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _metadata(manager: str, fields: object) -> dict[str, Any]:
    managed = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
    return {
        "name": "web-6d8f9c7b5-x2x7k",
        "namespace": "default",
        "uid": "2f0e2a51-9d0b-4d8a-b0d9-5f2f6f3d3c11",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"app": "web", "app.kubernetes.io/managed-by": "kubewright"},
        "annotations": {"example.com/team": "shop"},
        "managedFields": [managed],
    }


def _widget() -> dict[str, Any]:
    container = {
        "name": "web",
        "image": "registry.example.com/web:1.2.3",
        "command": ["/usr/bin/web"],
        "env": [{"name": "MODE", "value": "production"}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi"},
            "limits": {"cpu": "1", "memory": "256Mi"},
        },
    }
    return {
        "apiVersion": "bench.example.com/v1",
        "kind": "Widget",
        "metadata": _metadata("kubectl-create", {"f:spec": {"f:size": {}, "f:payload": {}}}),
        "spec": {
            "size": 3,
            "payload": "",
            "containers": [container],
            "placement": {"nodeSelector": {"example.com/pool": "amber"}, "tolerationSeconds": 300},
        },
    }


def _pod() -> dict[str, Any]:
    names = ("web", "proxy", "log", "metrics")
    fields: dict[str, object] = {
        "f:image": {},
        "f:name": {},
        "f:env": {},
        "f:ports": {},
        "f:resources": {},
        "f:volumeMounts": {},
    }
    managed = {"f:spec": {"f:containers": {f'k:{{"name":"{name}"}}': fields for name in names}}}
    metadata = _metadata("kube-controller-manager", managed)
    metadata["generateName"] = "web-6d8f9c7b5-"
    metadata["ownerReferences"] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web-6d8f9c7b5",
            "uid": "0a1b2c3d-1111-2222-3333-444455556666",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "volumes": [
                {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}},
                {"name": "config", "configMap": {"name": "web", "defaultMode": 420}},
            ],
            "containers": [_container(name) for name in names],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "web",
            "securityContext": {"runAsNonRoot": True},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
            ],
        },
        "status": {},
    }


def _container(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "image": f"registry.example.com/{name}:1.2.3",
        "args": [f"--name={name}", "--listen=0.0.0.0:8080"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            *({"name": f"{name.upper()}_{number}", "value": f"value of setting {number}"} for number in range(18)),
        ],
        "resources": {
            "limits": {"cpu": "500m", "memory": "256Mi"},
            "requests": {"cpu": "100m", "memory": "128Mi"},
        },
        "volumeMounts": [
            {"name": "token", "readOnly": True, "mountPath": "/var/run/secrets"},
            {"name": "config", "mountPath": f"/etc/{name}"},
        ],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http", "scheme": "HTTP"}, "periodSeconds": 5},
        "livenessProbe": {"httpGet": {"path": "/alive", "port": "http", "scheme": "HTTP"}, "periodSeconds": 10},
        "terminationMessagePath": "/dev/termination-log",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def _sized(content: dict[str, Any], size: int) -> dict[str, Any]:
    """With annotations as many as it takes to have that size."""
    annotations = content["metadata"]["annotations"]
    while size - len(_encode(content)) > 80:
        annotations[f"example.com/note-{len(annotations):02}"] = "a note of this object"
    annotations["example.com/rest"] = ""
    annotations["example.com/rest"] = "x" * (size - len(_encode(content)))
    return content


def _encode(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
