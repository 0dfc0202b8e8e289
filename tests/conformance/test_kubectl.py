"""kubectl does the same on the embedded control plane as on the real one: same output, same exit code."""

from __future__ import annotations

import asyncio
import re
import subprocess

import pytest

from kubewright.controlplane import ControlPlane

NAMESPACE = "kubectl-test"

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: nginx:1.27
        ports: [{containerPort: 80}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
"""

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.kubectl.example.com}
spec:
  group: kubectl.example.com
  scope: Namespaced
  names: {plural: gadgets, singular: gadget, kind: Gadget, shortNames: [gg]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Phase, type: string, jsonPath: .status.phase}
    schema:
      openAPIV3Schema:
        type: object
        description: A thing that does something.
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, minimum: 1, description: How many there are.}
              color: {type: string, default: green, enum: [green, red]}
          status:
            type: object
            properties: {size: {type: integer}, phase: {type: string}}
"""

GADGET = """
apiVersion: kubectl.example.com/v1
kind: Gadget
metadata: {name: one}
spec: {size: 3}
"""

ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]
"""

# Words after the first are arguments; a second element is standard input. Run in this order, in one namespace.
STEPS: list[tuple[str, str | None]] = [
    ("create configmap settings --from-literal=a=1 --from-literal=b=2", None),
    ("get configmap settings -o jsonpath={.data}", None),
    ("get configmap settings -o yaml", None),
    ("get configmap settings -o json", None),
    ("get configmaps -o name", None),
    ("get cm settings", None),
    ("get cm settings -o wide", None),
    ("get cm settings -o custom-columns=NAME:.metadata.name,DATA:.data.a", None),
    ("get cm settings -o go-template={{.metadata.name}}", None),
    ("get cm,secret -o name", None),
    ("get configmap nothing", None),
    ("get nothings", None),
    ("create configmap settings", None),
    ("create secret generic hush --from-literal=p=hidden", None),
    ("get secret hush -o jsonpath={.data.p}", None),
    ("describe configmap settings", None),
    ("label configmap settings tier=front", None),
    ("label configmap settings tier=back", None),
    ("label configmap settings tier=back --overwrite", None),
    ("annotate configmap settings note=hello", None),
    ("get configmap -l tier=back -o name", None),
    ("get configmap --field-selector metadata.name=settings -o name", None),
    ('patch configmap settings --type=merge -p {"data":{"c":"3"}}', None),
    ('patch configmap settings --type=json -p [{"op":"remove","path":"/data/c"}]', None),
    ('patch configmap settings --type=strategic -p {"data":{"d":"4"}}', None),
    ("get configmap settings -o jsonpath={.data}", None),
    ("apply -f -", MANIFEST),
    ("apply -f -", MANIFEST),
    ("diff -f -", MANIFEST),
    ("apply -f -", MANIFEST.replace("nginx:1.27", "nginx:1.28")),
    ("apply --server-side -f -", MANIFEST.replace("replicas: 2", "replicas: 3")),
    ("apply --server-side --force-conflicts -f -", MANIFEST.replace("replicas: 2", "replicas: 3")),
    ("get deployment web -o jsonpath={.spec.replicas}", None),
    ("scale deployment web --replicas=1", None),
    ("get deployment web -o jsonpath={.spec.replicas}", None),
    ("set image deployment/web main=nginx:1.29", None),
    ("get deployment web -o jsonpath={.spec.template.spec.containers[0].image}", None),
    ("create deployment side --image=nginx --dry-run=server -o name", None),
    ("create role reader --verb=get --resource=pods", None),
    ("create rolebinding readers --role=reader --user=eve", None),
    ("auth can-i get pods --as=eve", None),
    ("auth can-i delete pods --as=eve", None),
    ("auth whoami -o jsonpath={.status.userInfo.username}", None),
    ("get role reader -o yaml", None),
    ("describe role reader", None),
    ("auth can-i --list --as=eve", None),
    ("auth reconcile -f - --dry-run=server", ROLE),
    ("create serviceaccount robot", None),
    ("create token robot --duration=10m", None),
    ("describe serviceaccount robot", None),
    ("rollout history deployment/web", None),
    ("rollout restart deployment/web", None),
    ("rollout pause deployment/web", None),
    ("rollout pause deployment/web", None),
    ("rollout resume deployment/web", None),
    ("rollout undo deployment/web --to-revision=1 --dry-run=server", None),
    ("set env deployment/web MODE=test", None),
    ("autoscale deployment web --min=1 --max=3", None),
    ("get hpa web -o jsonpath={.spec}", None),
    ("expose deployment web --name=exposed --port=80", None),
    ("get service exposed -o jsonpath={.spec.ports}{.spec.selector}", None),
    ("create quota small --hard=services=100", None),
    ("create poddisruptionbudget pdb --selector=app=web --min-available=1", None),
    ("create ingress front --rule=example.com/*=web:80", None),
    ("get ingress front", None),
    ("create job once --image=busybox -- true", None),
    ("get job once -o jsonpath={.spec.backoffLimit}", None),
    ("create cronjob often --image=busybox --schedule=*/5,*,*,*,*", None),
    ("run single --image=nginx --restart=Never", None),
    ("get pod single -o jsonpath={.spec.containers[0].imagePullPolicy}", None),
    ("delete pod single --force", None),
    ("replace -f -", MANIFEST.partition("---")[2].replace("targetPort: 8080", "targetPort: 9090")),
    ("create -f -", MANIFEST.partition("---")[2]),
    ("wait --for=delete configmap/nothing --timeout=5s", None),
    ("get --raw /nothing", None),
    ("get service web -o jsonpath={.spec.ports}", None),
    ("apply -f -", CRD),
    ("wait --for=condition=Established crd/gadgets.kubectl.example.com", None),
    ("apply -f -", GADGET),
    ("get gg", None),
    ("get gadget one -o jsonpath={.spec}", None),
    ("apply -f -", GADGET.replace("size: 3", "size: 0")),
    ("apply -f -", GADGET.replace("size: 3", "size: 3, color: blue")),
    ("apply -f -", GADGET.replace("size: 3", "size: 3, sizee: 4")),
    ("scale gadget one --replicas=5", None),
    ("explain gadget.spec", None),
    ("explain gadget.spec.size", None),
    ("delete gadget one", None),
    ("delete configmap settings", None),
    ("delete configmap settings", None),
    ("delete deployment web --cascade=foreground --wait=false", None),
    ("delete service web", None),
    ("api-resources --api-group=kubectl.example.com --no-headers", None),
    ("api-resources --api-group=apps --no-headers", None),
    ("get namespace kubectl-test -o jsonpath={.status.phase}", None),
    ("delete crd gadgets.kubectl.example.com", None),
]


@pytest.mark.usefixtures("real_control_plane")
async def test_kubectl_says_the_same_on_both(
    embedded_control_plane: ControlPlane, real_control_plane: ControlPlane
) -> None:
    planes = (embedded_control_plane, real_control_plane)
    for plane in planes:
        await plane.kubectl("create", "namespace", NAMESPACE)
    differences: list[str] = []
    for words, stdin in STEPS:
        arguments = _arguments(words)
        ours, theirs = await asyncio.gather(
            *(plane.kubectl("-n", NAMESPACE, *arguments, input=stdin, check=False) for plane in planes)
        )
        if _told(ours) != _told(theirs):
            differences.append(f"kubectl {words}\n--- embedded\n{_told(ours)}\n--- real\n{_told(theirs)}\n")
    assert not differences, f"{len(differences)} of {len(STEPS)} differ:\n" + "\n".join(differences)


def _arguments(words: str) -> list[str]:
    """Split at blanks, but not within braces and brackets: JSON and JSONPath are one word."""
    return re.findall(r"(?:[^\s{\[]|\{[^\s]*\}|\[[^\s]*\])+", words)


def _told(result: subprocess.CompletedProcess[str]) -> str:
    """What was said, without what is never the same twice."""
    text = f"{result.returncode}\n{result.stdout}{result.stderr}"
    text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UID", text)
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", text)
    text = re.sub(r'(resourceVersion\\?"?: ?)\\?"\d+\\?"', r"\1REVISION", text)
    text = re.sub(r"\b\d+s\b", "AGE", text)
    text = re.sub(r"/tmp/\S+", "FILE", text)
    text = re.sub(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "TOKEN", text)
    text = re.sub(r"10\.0\.0\.\d+", "ADDRESS", text)
    text = re.sub(r"127\.0\.0\.1:\d+", "SERVER", text)
    return re.sub(r" +", " ", text)
