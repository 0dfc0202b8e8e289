"""Kinds that every server has, and what may be in their objects."""

from __future__ import annotations

from tests.conformance.differential.generators import Family, entries, operations, optional, required, some, values
from tests.conformance.differential.sides import FIXED_TIME, uncollected

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, text

data = entries("abc", values("1", "2", ""))
changed_data = entries("abc", values("1", "2", None))
encoded = values({"z": "eA=="}, {"a": "eA=="}, {})
CONFIG_MAPS = Family(
    path="/api/v1/namespaces/{namespace}/configmaps",
    api_version="v1",
    kind="ConfigMap",
    contents=optional(data=data, binaryData=encoded, immutable=values(False, False, True)),
    changes=optional(data=changed_data | values(None), binaryData=values({"z": "eQ=="}, {"z": None}, None)),
    operations=operations(
        ["/data", "/data/a", "/data/b", "/data/c", "/binaryData/z"], values("1", "2", {"a": "2"}, {})
    ),
)
SECRETS = Family(
    path="/api/v1/namespaces/{namespace}/secrets",
    api_version="v1",
    kind="Secret",
    contents=optional(
        data=encoded | values({"tls.crt": "eA==", "tls.key": ""}, {".dockercfg": "e30="}, {"a": "not base64"}),
        stringData=data,
        type=values("Opaque", "example.com/own", "kubernetes.io/tls", "kubernetes.io/dockercfg", ""),
        immutable=values(False, False, True),
    ),
    changes=optional(
        data=values({"z": "eQ=="}, {"z": None}, None), stringData=changed_data, type=values(None, "example.com/own")
    ),
    operations=operations(["/data", "/data/a", "/stringData/b", "/immutable"], values("eA==", True, {"a": "eA=="}, {})),
)

ports = required(port=values(80, 81, 0), targetPort=values(8080, "http", 70000)) | required(
    name=values("one", "two"), port=values(80, 81), protocol=values("TCP", "UDP", "tcp")
)
conditions = required(
    type=values("Ready", "Done"),
    status=values("True", "False"),
    reason=values("Because"),
    message=values(""),
    lastTransitionTime=values(FIXED_TIME),
)
selectors = entries(["app", "tier"], values("x", "y"), 2)
service_specs = (
    optional(
        ports=some(ports),
        selector=selectors,
        type=values("ClusterIP", "ExternalName", "NodePort", "LoadBalancer", "Unknown"),
        externalName=values("", "example.com", "Not A Name"),
        sessionAffinity=values("None", "ClientIP", "Other"),
        publishNotReadyAddresses=values(True, False),
    )
    | required(clusterIP=values("None"), selector=selectors, ports=some(ports))
    | required(
        ports=some(ports),
        ipFamilyPolicy=values("SingleStack", "PreferDualStack", "RequireDualStack", "Other"),
        ipFamilies=values(["IPv4"], ["IPv6"], ["IPv4", "IPv6"], []),
        clusterIP=values("", "None"),
    )
    | required(
        ports=some(ports),
        type=values("ClusterIP", "LoadBalancer", "NodePort"),
        clusterIPs=values([], ["None"], ["wrong"], ["", ""]),
        externalTrafficPolicy=values("", "Local", "Cluster", "Other"),
        internalTrafficPolicy=values("Local", "Cluster", "Other"),
    )
)
ingress = optional(
    ip=values("1.2.3.4", "wrong", ""),
    hostname=values("example.com", "Not A Name"),
    ipMode=values("VIP", "Proxy", "Other"),
)
SERVICES = Family(
    path="/api/v1/namespaces/{namespace}/services",
    api_version="v1",
    kind="Service",
    contents=required(spec=service_specs),
    changes=optional(
        spec=service_specs
        | optional(selector=values(None), ports=values(None), type=values(None), clusterIP=values(None, ""))
    ),
    operations=operations(
        ["/spec/ports", "/spec/ports/0", "/spec/ports/0/port", "/spec/selector"], values(82, {"port": 83})
    ),
    statuses=optional(conditions=some(conditions), loadBalancer=optional(ingress=some(ingress))),
)

container = required(
    name=values("main", "side"),
    image=values("nginx:1", "nginx", "busybox:2"),
    imagePullPolicy=values("Always", "Never"),
) | required(
    name=values("main", "side", "Wrong"),
    image=values("nginx:1"),
    env=some(required(name=values("A", "B"), value=values("1", "2"))),
    ports=some(required(containerPort=values(80, 81))),
)
pod_specs = required(containers=some(container)) | required(
    containers=some(container),
    volumes=some(required(name=values("v", "w"), emptyDir=values({}))),
    tolerations=some(required(key=values("k", "l"), operator=values("Exists"))),
    nodeSelector=selectors,
    restartPolicy=values("Always", "Never"),
)
changed_pod_specs = optional(
    containers=some(
        container | required(name=values("main"), **{"$patch": values("delete")}) | required(name=values("main", "new"))
    ),
    volumes=some(required(name=values("v"), emptyDir=values(None, {})) | required(**{"$patch": values("replace")})),
    nodeSelector=values(None, {"app": None}, {"tier": "z"}),
    restartPolicy=values(None, "Always"),
)
template_metadata = required(labels=values({"app": "x"}))
POD_TEMPLATES = Family(
    path="/api/v1/namespaces/{namespace}/podtemplates",
    api_version="v1",
    kind="PodTemplate",
    contents=required(template=required(metadata=template_metadata, spec=pod_specs)),
    changes=required(template=required(spec=changed_pod_specs)),
    operations=operations(
        ["/template/spec/containers/0", "/template/spec/containers/0/image", "/template/spec/nodeSelector"],
        values("nginx:3", {"name": "added", "image": "nginx"}, {}),
    ),
)
PODS = Family(
    path="/api/v1/namespaces/{namespace}/pods",
    api_version="v1",
    kind="Pod",
    contents=required(spec=pod_specs),
    changes=required(
        spec=changed_pod_specs
        | optional(
            activeDeadlineSeconds=values(5, 10, None, -1),
            tolerations=values(None, [{"key": "m", "operator": "Exists"}]),
        )
    ),
    operations=operations(
        ["/spec/containers/0", "/spec/containers/0/image", "/spec/nodeSelector", "/spec/tolerations/0"],
        values("nginx:3", {"name": "added", "image": "nginx"}, {}),
    ),
    statuses=optional(
        phase=values("Pending", "Running", "Strange"),
        conditions=some(required(type=values("Ready", "example.com/own"), status=values("True", "False", "Maybe"))),
        podIP=values("10.0.0.7"),
        reason=values("Because"),
    ),
)

# Managed by an unknown controller: nothing acts on these.
job_pods = required(containers=some(container), restartPolicy=values("Never", "OnFailure", "Always"))
job_specs = optional(
    parallelism=values(0, 1, -1),
    completions=values(1, 2, None),
    backoffLimit=values(0, 6),
    completionMode=values("Indexed", "NonIndexed", "Other"),
    suspend=values(True, False),
    ttlSecondsAfterFinished=values(100),
    manualSelector=values(True, False),
)
JOBS = Family(
    path="/apis/batch/v1/namespaces/{namespace}/jobs",
    api_version="batch/v1",
    kind="Job",
    contents=required(
        spec=job_specs.flatmap(
            lambda spec: required(
                managedBy=values("example.com/nobody"),
                # With labels: the real server stores a job without any, but reads it with those of the template, so
                # that the next write changes something even if it changes nothing.
                template=required(metadata=template_metadata, spec=job_pods),
                **{name: values(value) for name, value in spec.items()},
            )
        )
    ),
    changes=required(spec=job_specs | required(template=required(spec=changed_pod_specs))),
    operations=operations(
        ["/spec/parallelism", "/spec/suspend", "/spec/template/spec/containers/0/image"], values(3, True, "nginx:3")
    ),
    statuses=optional(active=values(1, -1), startTime=values(FIXED_TIME), succeeded=values(0, 1)),
    # A PUT could take the labels away.
    replaces_status=False,
)

rules = required(
    apiGroups=values([""], ["apps", ""]), resources=values(["pods"], ["*"]), verbs=values(["get"], [], ["get", "list"])
) | required(nonResourceURLs=values(["/healthz"], ["/a/*"]), verbs=values(["get"]))
CLUSTER_ROLES = Family(
    path="/apis/rbac.authorization.k8s.io/v1/clusterroles",
    api_version="rbac.authorization.k8s.io/v1",
    kind="ClusterRole",
    # Not empty: the real server distinguishes none from an empty list until it has stored it, and knows who sent it.
    contents=optional(rules=some(rules).filter(bool) | values(None)),
    changes=optional(rules=some(rules).filter(bool) | values(None)),
    operations=operations(
        ["/rules", "/rules/0", "/rules/0/verbs/0", "/rules/-"], values("watch", {"verbs": ["get"]}, [])
    ),
)


def is_terminating(namespace: JSONObject) -> bool:
    """Whether the namespace still has to be emptied."""
    deleted = bool(text(namespace, "metadata", "deletionTimestamp"))
    return uncollected(namespace) or (deleted and "kubernetes" in items(namespace, "spec", "finalizers"))


NAMESPACES = Family(
    path="/api/v1/namespaces",
    api_version="v1",
    kind="Namespace",
    contents=optional(spec=values({}, {"finalizers": ["kubernetes"]}, {"finalizers": ["example.com/other"]})),
    changes=optional(spec=values(None, {"finalizers": None}, {"finalizers": ["wrong"]})),
    operations=operations(["/spec/finalizers", "/spec/finalizers/0"], values("kubernetes", [])),
    statuses=optional(phase=values("Active", "Terminating", "Other"), conditions=some(conditions)),
    # In no order, finalizers of the garbage collector are added to others.
    propagation=("", "Background"),
    unfinished=is_terminating,
    sequences=10,
)
