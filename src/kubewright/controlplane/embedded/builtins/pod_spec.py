"""The rules of a `PodSpec`, in a pod or in the template of one."""

from __future__ import annotations

import re

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import FieldError, duplicate, invalid_value, required
from kubewright.controlplane.embedded.builtins.containers import (
    validate_container,
    validate_containers,
    validate_ids,
)
from kubewright.controlplane.embedded.builtins.metadata import validate_annotations, validate_labels
from kubewright.controlplane.embedded.builtins.names import between, dns_label, dns_subdomain, qualified_name
from kubewright.controlplane.embedded.builtins.placement import (
    validate_affinity,
    validate_spreading,
    validate_tolerations,
)
from kubewright.controlplane.embedded.builtins.values import Errors, address, matching, number, objects, one_of, present
from kubewright.controlplane.embedded.builtins.volumes import validate_volumes

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_SYSCTL_TEXT = (
    r"must have at most 253 characters and match regex "
    r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)
_SYSCTL = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?")
_MAX_LENGTH = 2**31 - 1


def validate_pod_spec(spec: JSONObject, path: str) -> Errors:
    """What is wrong with the specification of a pod, in the order kube-apiserver finds it."""
    volumes, errors = validate_volumes(spec, f"{path}.volumes")
    errors += validate_containers(spec, volumes, path)
    errors += _ephemeral_containers(spec, path)
    if spec.get("hostNetwork") is True:
        errors += _host_network(spec, path)
    errors += one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), ("Always", "OnFailure", "Never"))
    errors += one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS_POLICIES)
    errors += validate_labels(mapping(spec, "nodeSelector"), f"{path}.nodeSelector")
    errors += _security(mapping(spec, "securityContext"), f"{path}.securityContext")
    errors += validate_affinity(mapping(spec, "affinity"), f"{path}.affinity")
    errors += _dns(spec, f"{path}.dnsConfig")
    for index, gate in objects(spec, "readinessGates"):
        where = f"{path}.readinessGates[{index}].conditionType"
        errors += matching(where, text(gate, "conditionType"), qualified_name)
    errors += _scheduling_gates(spec, f"{path}.schedulingGates")
    errors += validate_spreading(spec.get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    for field in ("serviceAccountName", "nodeName"):
        if text(spec, field):
            errors += matching(f"{path}.{field}", text(spec, field), dns_subdomain)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= number(deadline) <= _MAX_LENGTH:
        errors.append(invalid_value(f"{path}.activeDeadlineSeconds", deadline, between(1, _MAX_LENGTH)))
    for field in ("hostname", "subdomain"):
        if text(spec, field):
            errors += matching(f"{path}.{field}", text(spec, field), dns_label)
    errors += validate_tolerations(spec.get("tolerations"), f"{path}.tolerations")
    for index, alias in objects(spec, "hostAliases"):
        errors += address(f"{path}.hostAliases[{index}].ip", text(alias, "ip"))
        for host in items(alias, "hostnames"):
            errors += matching(f"{path}.hostAliases.hostnames", str(host), dns_subdomain)
    for field in ("priorityClassName", "runtimeClassName"):
        if text(spec, field):
            errors += matching(f"{path}.{field}", text(spec, field), dns_subdomain)
    if "preemptionPolicy" in spec:
        errors += one_of(f"{path}.preemptionPolicy", spec["preemptionPolicy"], ("PreemptLowerPriority", "Never"))
    system = spec.get("os")
    if isinstance(system, dict):
        name = text(system, "name")
        errors += one_of(f"{path}.os", name, ("linux", "windows")) if name else [required(f"{path}.os.name")]
    return errors


def validate_pod_template(template: JSONValue, path: str) -> Errors:
    """What is wrong with a template: its labels, annotations and specification."""
    metadata = mapping(template, "metadata")
    errors = validate_labels(mapping(metadata, "labels"), f"{path}.labels")
    errors += validate_annotations(mapping(metadata, "annotations"), f"{path}.annotations")
    errors += validate_pod_spec(mapping(template, "spec"), f"{path}.spec")
    if items(template, "spec", "ephemeralContainers"):
        complaint = "ephemeral containers not allowed in pod template"
        errors.append(FieldError("FieldValueForbidden", f"{path}.spec.ephemeralContainers", None, complaint))
    return errors


def _ephemeral_containers(spec: JSONObject, path: str) -> Errors:
    if not items(spec, "ephemeralContainers"):
        return []
    errors: Errors = []
    others = {text(item, "name") for kind in ("containers", "initContainers") for _, item in objects(spec, kind)}
    names = set(others)
    volumes = {text(volume, "name"): volume for _, volume in objects(spec, "volumes")}
    for index, container in objects(spec, "ephemeralContainers"):
        where = f"{path}.ephemeralContainers[{index}]"
        errors += validate_container(container, volumes, where)
        name, target = text(container, "name"), text(container, "targetContainerName")
        if name in names:
            errors.append(duplicate(f"{where}.name", name))
        names.add(name)
        if target and target not in others:
            errors.append(FieldError("FieldValueNotFound", f"{where}.targetContainerName", target))
        for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "ports"):
            if field in container:
                complaint = "cannot be set for an Ephemeral Container"
                errors.append(FieldError("FieldValueForbidden", f"{where}.{field}", None, complaint))
    return errors


def _host_network(spec: JSONObject, path: str) -> Errors:
    errors: Errors = []
    for kind in ("containers", "initContainers"):
        for position, container in objects(spec, kind):
            for index, port in objects(container, "ports"):
                if port.get("hostPort") != port.get("containerPort"):
                    where = f"{path}.{kind}[{position}].ports[{index}].hostPort"
                    complaint = "must match `containerPort` when `hostNetwork` is true"
                    errors.append(invalid_value(where, port.get("hostPort", 0), complaint))
    return errors


def _security(security: JSONObject, path: str) -> Errors:
    errors = validate_ids(security, path, "fsGroup", "runAsUser", "runAsGroup")
    for index, sysctl in objects(security, "sysctls"):
        name = text(sysctl, "name")
        if not name:
            errors.append(required(f"{path}.sysctls[{index}].name"))
        elif len(name) > 253 or not _SYSCTL.fullmatch(name):
            errors.append(invalid_value(f"{path}.sysctls[{index}].name", name, _SYSCTL_TEXT))
    if "fsGroupChangePolicy" in security:
        known = ("Always", "OnRootMismatch")
        errors += one_of(f"{path}.fsGroupChangePolicy", security["fsGroupChangePolicy"], known)
    return errors


def _dns(spec: JSONObject, path: str) -> Errors:
    config = mapping(spec, "dnsConfig")
    servers = items(config, "nameservers")
    if spec.get("dnsPolicy") == "None":
        if not config:
            return [required(path, "must provide `dnsConfig` when `dnsPolicy` is None")]
        if not servers:
            return [
                required(f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
            ]
    errors: Errors = []
    if len(servers) > 3:
        errors.append(invalid_value(f"{path}.nameservers", servers, "must not have more than 3 nameservers"))
    for index, server in enumerate(servers):
        errors += address(f"{path}.nameservers[{index}]", str(server))
    for index, domain in enumerate(items(config, "searches")):
        errors += matching(f"{path}.searches[{index}]", str(domain).removesuffix("."), dns_subdomain)
    for index, option in objects(config, "options"):
        if not text(option, "name"):
            errors.append(required(f"{path}.options[{index}]", "must not be empty"))
    return errors


def _scheduling_gates(spec: JSONObject, path: str) -> Errors:
    errors: Errors = []
    seen: set[str] = set()
    for index, gate in objects(spec, "schedulingGates"):
        name = text(gate, "name")
        errors += present(f"{path}[{index}]", name, qualified_name)
        if name in seen:
            errors.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return errors
