"""What kube-apiserver fills in while it decodes, by Go type: wherever a `Probe` stands, its defaults are the same.

That includes synchronizing fields that exist twice, such as `podIP` and `podIPs`.

`CONSTANTS` are fields that get a value when they are absent. `FUNCTIONS` are for what depends on other fields; they
change the struct in place, after everything within it has its defaults.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import copied, inside, items, mapping, text

_RBAC = "rbac.authorization.k8s.io"
_FILE_MODE = 0o644
_VOLUME_DEFAULTS: Mapping[str, Mapping[str, JSONValue]] = {
    "ISCSI": {"iscsiInterface": "default"},
    "RBD": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"},
    "ScaleIO": {"storageMode": "ThinProvisioned", "fsType": "xfs"},
}

CONSTANTS: Mapping[str, Mapping[str, JSONValue]] = {
    "core/v1#Container": {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"},
    "core/v1#EphemeralContainer": {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    },
    "core/v1#ContainerPort": {"protocol": "TCP"},
    "core/v1#EndpointPort": {"protocol": "TCP"},
    "core/v1#PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    },
    "core/v1#Probe": {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3},
    "core/v1#GRPCAction": {"service": ""},
    "core/v1#HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core/v1#SecretVolumeSource": {"defaultMode": _FILE_MODE},
    "core/v1#ConfigMapVolumeSource": {"defaultMode": _FILE_MODE},
    "core/v1#DownwardAPIVolumeSource": {"defaultMode": _FILE_MODE},
    "core/v1#ProjectedVolumeSource": {"defaultMode": _FILE_MODE},
    "core/v1#ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core/v1#HostPathVolumeSource": {"type": ""},
    "core/v1#AzureDiskVolumeSource": {
        "cachingMode": "ReadWrite",
        "fsType": "ext4",
        "readOnly": False,
        "kind": "Shared",
    },
    **{f"core/v1#{kind}VolumeSource": fields for kind, fields in _VOLUME_DEFAULTS.items()},
    **{f"core/v1#{kind}PersistentVolumeSource": fields for kind, fields in _VOLUME_DEFAULTS.items()},
    "core/v1#ObjectFieldSelector": {"apiVersion": "v1"},
    "core/v1#Secret": {"type": "Opaque"},
    "core/v1#PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core/v1#PersistentVolumeStatus": {"phase": "Pending"},
    "core/v1#PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core/v1#PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core/v1#NamespaceStatus": {"phase": "Active"},
    "core/v1#ReplicationControllerSpec": {"replicas": 1},
    "apps/v1#DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    "apps/v1#ReplicaSetSpec": {"replicas": 1},
    "apps/v1#DaemonSetSpec": {"revisionHistoryLimit": 10},
    "apps/v1#StatefulSetSpec": {"podManagementPolicy": "OrderedReady", "replicas": 1, "revisionHistoryLimit": 10},
    "batch/v1#CronJobSpec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    },
    "batch/v1#PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "autoscaling/v1#HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "autoscaling/v2#HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "networking/v1#NetworkPolicyPort": {"protocol": "TCP"},
    "networking/v1#IngressClassParametersReference": {"scope": "Cluster"},
    "storage/v1#StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "storage/v1#CSIDriverSpec": {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
        "requiresRepublish": False,
        "seLinuxMount": False,
    },
    "scheduling/v1#PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "discovery/v1#EndpointPort": {"name": "", "protocol": "TCP"},
    "flowcontrol/v1#ExemptPriorityLevelConfiguration": {"nominalConcurrencyShares": 0, "lendablePercent": 0},
    "flowcontrol/v1#LimitedPriorityLevelConfiguration": {"nominalConcurrencyShares": 30, "lendablePercent": 0},
    "admissionregistration/v1#ValidatingWebhook": {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
    },
    "admissionregistration/v1#MutatingWebhook": {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": 10,
        "reinvocationPolicy": "Never",
    },
    "admissionregistration/v1#Rule": {"scope": "*"},
    "admissionregistration/v1#RuleWithOperations": {"scope": "*"},
    "admissionregistration/v1#NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration/v1#ServiceReference": {"port": 443},
    "admissionregistration/v1#ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration/v1#MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration/v1#MatchResources": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
    },
    "apiregistration/v1#ServiceReference": {"port": 443},
    "authentication/v1#TokenRequestSpec": {"expirationSeconds": 3600},
}


def pulls_always(image: str) -> bool:
    """Whether an image is named without a tag and digest, or with the tag `latest`."""
    if "@" in image:
        return image.partition("@")[0].rpartition("/")[2].partition(":")[2] == "latest"
    return image.rpartition("/")[2].partition(":")[2] in ("", "latest")


def _container(container: JSONObject) -> None:
    if "imagePullPolicy" not in container:
        image = text(container, "image")
        # Go cannot parse an empty image, so that there is no tag to compare with.
        container["imagePullPolicy"] = "Always" if image and pulls_always(image) else "IfNotPresent"


def _volume(volume: JSONObject) -> None:
    if len(volume) <= ("name" in volume):
        volume["emptyDir"] = {}
    image = volume.get("image")
    if isinstance(image, dict) and "pullPolicy" not in image:
        image["pullPolicy"] = "Always" if pulls_always(text(image, "reference")) else "IfNotPresent"


def _pod(pod: JSONObject) -> None:
    spec = mapping(pod, "spec")
    for container in (*items(spec, "containers"), *items(spec, "initContainers")):
        if not isinstance(container, dict):
            continue
        resources = mapping(container, "resources")
        limits = mapping(resources, "limits")
        if limits:
            requests = inside(resources, "requests")
            for name, amount in limits.items():
                requests.setdefault(name, amount)
        if spec.get("hostNetwork") is True:
            for port in items(container, "ports"):
                if isinstance(port, dict) and "hostPort" not in port and port.get("containerPort"):
                    port["hostPort"] = port["containerPort"]
    spec.setdefault("enableServiceLinks", True)
    grace = spec.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0:
        spec["terminationGracePeriodSeconds"] = 1


def _pod_spec(spec: JSONObject) -> None:
    account = text(spec, "serviceAccountName") or text(spec, "serviceAccount")
    if account:
        spec.update(serviceAccountName=account, serviceAccount=account)


def _pod_status(status: JSONObject) -> None:
    address, addresses = text(status, "podIP"), items(status, "podIPs")
    if address and (not addresses or text(addresses[0], "ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses:
        status["podIP"] = text(addresses[0], "ip")


def _node_spec(spec: JSONObject) -> None:
    network, networks = text(spec, "podCIDR"), items(spec, "podCIDRs")
    if network and (not networks or networks[0] != network):
        spec["podCIDRs"] = [network]
    elif networks:
        spec["podCIDR"] = networks[0]


def _secret(secret: JSONObject) -> None:
    """`stringData` is written into `data` and never stored."""
    for name, value in mapping(secret.pop("stringData", None)).items():
        inside(secret, "data")[name] = base64.b64encode(str(value).encode()).decode()


def _service(service: JSONObject) -> None:
    spec = inside(service, "spec")
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        spec.pop("sessionAffinityConfig", None)
    elif affinity == "ClientIP":
        client_ip = inside(spec, "sessionAffinityConfig", "clientIP")
        client_ip.setdefault("timeoutSeconds", 10800)
    kind = spec.setdefault("type", "ClusterIP")
    for port in items(spec, "ports"):
        if isinstance(port, dict):
            port.setdefault("protocol", "TCP")
            if port.get("targetPort") in (None, 0, ""):
                port["targetPort"] = port.get("port", 0)
    external = kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and items(spec, "externalIPs"))
    if external:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer", "ClusterIP"):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in items(service, "status", "loadBalancer", "ingress"):
            if isinstance(ingress, dict) and "ip" in ingress:
                ingress.setdefault("ipMode", "VIP")


def _namespace(namespace: JSONObject) -> None:
    name = text(namespace, "metadata", "name")
    if name:
        inside(namespace, "metadata", "labels")["kubernetes.io/metadata.name"] = name


def _node_status(status: JSONObject) -> None:
    if "allocatable" not in status and "capacity" in status:
        status["allocatable"] = copied(status["capacity"])


def _limit_range_item(item: JSONObject) -> None:
    if item.get("type") != "Container":
        return
    default = dict(mapping(item, "default"))
    request = dict(mapping(item, "defaultRequest"))
    for name, amount in mapping(item, "max").items():
        default.setdefault(name, amount)
    for amounts in (default, mapping(item, "min")):
        for name, amount in amounts.items():
            request.setdefault(name, amount)
    for name, amounts in (("default", default), ("defaultRequest", request)):
        if amounts:
            item[name] = amounts


def _replication_controller(controller: JSONObject) -> None:
    labels = mapping(controller, "spec", "template", "metadata", "labels")
    if labels and not mapping(controller, "spec", "selector"):
        inside(controller, "spec")["selector"] = copied(labels)
    if labels and not mapping(controller, "metadata", "labels"):
        inside(controller, "metadata")["labels"] = copied(labels)


def _deployment_strategy(strategy: JSONObject) -> None:
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = inside(strategy, "rollingUpdate")
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")


def _daemon_set_strategy(strategy: JSONObject) -> None:
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = inside(strategy, "rollingUpdate")
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)


def _stateful_set(stateful_set: JSONObject) -> None:
    spec = inside(stateful_set, "spec")
    strategy = inside(spec, "updateStrategy")
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        inside(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        inside(strategy, "rollingUpdate").setdefault("partition", 0)
    retention = inside(spec, "persistentVolumeClaimRetentionPolicy")
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    for claim in items(spec, "volumeClaimTemplates"):
        if isinstance(claim, dict):
            claim.update(apiVersion="v1", kind="PersistentVolumeClaim")


def _job(job: JSONObject) -> None:
    spec = inside(job, "spec")
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 2**31 - 1 if "backoffLimitPerIndex" in spec else 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec.setdefault("manualSelector", False)
    labels = mapping(spec, "template", "metadata", "labels")
    if labels and not mapping(job, "metadata", "labels"):
        # The same map, not a copy: see how `jobs` prepares a creation.
        inside(job, "metadata")["labels"] = labels


_SCALE_UP: JSONObject = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: JSONObject = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


def _autoscaler(autoscaler: JSONObject) -> None:
    spec = inside(autoscaler, "spec")
    if not items(spec, "metrics"):
        target: JSONObject = {"type": "Utilization", "averageUtilization": 80}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if isinstance(behavior, dict):
        for name, rules in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
            given = inside(behavior, name)
            for field, value in rules.items():
                given.setdefault(field, copied(value))


def _network_policy_spec(spec: JSONObject) -> None:
    if not items(spec, "policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if items(spec, "egress") else ["Ingress"]


def _role_reference(reference: JSONObject) -> None:
    if not reference.get("apiGroup"):
        reference["apiGroup"] = _RBAC


def _subject(subject: JSONObject) -> None:
    if "apiGroup" not in subject and subject.get("kind") in ("User", "Group"):
        subject["apiGroup"] = _RBAC


def _flow_schema_spec(spec: JSONObject) -> None:
    spec["matchingPrecedence"] = spec.get("matchingPrecedence") or 1000


def _queuing(queuing: JSONObject) -> None:
    for name, value in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
        queuing[name] = queuing.get(name) or value


def _device_request(request: JSONObject) -> None:
    if request.setdefault("allocationMode", "ExactCount") == "ExactCount":
        request.setdefault("count", 1)


FUNCTIONS: Mapping[str, Callable[[JSONObject], None]] = {
    "core/v1#Container": _container,
    "core/v1#EphemeralContainer": _container,
    "core/v1#Volume": _volume,
    "core/v1#NodeSpec": _node_spec,
    "core/v1#Pod": _pod,
    "core/v1#PodSpec": _pod_spec,
    "core/v1#PodStatus": _pod_status,
    "core/v1#Secret": _secret,
    "core/v1#Service": _service,
    "core/v1#Namespace": _namespace,
    "core/v1#NodeStatus": _node_status,
    "core/v1#LimitRangeItem": _limit_range_item,
    "core/v1#ReplicationController": _replication_controller,
    "apps/v1#DeploymentStrategy": _deployment_strategy,
    "apps/v1#DaemonSetUpdateStrategy": _daemon_set_strategy,
    "apps/v1#StatefulSet": _stateful_set,
    "batch/v1#Job": _job,
    "autoscaling/v2#HorizontalPodAutoscaler": _autoscaler,
    "networking/v1#NetworkPolicySpec": _network_policy_spec,
    "rbac/v1#RoleRef": _role_reference,
    "rbac/v1#Subject": _subject,
    "flowcontrol/v1#FlowSchemaSpec": _flow_schema_spec,
    "flowcontrol/v1#QueuingConfiguration": _queuing,
    "resource/v1#ExactDeviceRequest": _device_request,
    "resource/v1#DeviceSubRequest": _device_request,
}
