"""The rules of containers: ports, environment, probes, hooks, mounts and their security."""

from __future__ import annotations

from collections.abc import Mapping

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import (
    FieldError,
    duplicate,
    forbidden_field,
    invalid_value,
    required,
)
from kubewright.controlplane.embedded.builtins.container_resources import validate_resources
from kubewright.controlplane.embedded.builtins.field_references import (
    CONTAINER_RESOURCES,
    ENVIRONMENT_FIELDS,
    validate_field_reference,
    validate_resource_reference,
)
from kubewright.controlplane.embedded.builtins.names import (
    between,
    config_key,
    dns_label,
    dns_subdomain,
    environment_name,
    http_header,
    port_name,
)
from kubewright.controlplane.embedded.builtins.values import (
    Errors,
    StructError,
    local_path,
    matching,
    not_negative_fields,
    number,
    objects,
    one_of,
    port,
    port_or_name,
    present,
)

PROTOCOLS = ("SCTP", "TCP", "UDP")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_ONLY_SIDECARS = "may not be set for init containers without restartPolicy=Always"
_HIGHEST_ID = 2**31 - 1


def validate_containers(spec: JSONObject, volumes: Mapping[str, JSONObject], path: str) -> Errors:
    """What is wrong with the containers and init containers of a pod with these volumes."""
    containers = list(objects(spec, "containers"))
    if not containers:
        return [required(f"{path}.containers"), *_init_containers(spec, volumes, path)]
    errors: Errors = []
    grace = number(spec.get("terminationGracePeriodSeconds"))
    names: set[str] = set()
    for index, container in containers:
        where = f"{path}.containers[{index}]"
        errors += validate_container(container, volumes, where)
        name = text(container, "name")
        if name in names:
            errors.append(duplicate(f"{where}.name", name))
        names.add(name)
        errors += _lifecycle_and_probes(container, grace, where)
        policy = container.get("restartPolicy")
        if policy is not None:
            errors += one_of(f"{where}.restartPolicy", policy, ("Always", "Never", "OnFailure"))
    errors += _host_ports([container for _, container in containers], f"{path}.containers")
    return errors + _init_containers(spec, volumes, path)


def _init_containers(spec: JSONObject, volumes: Mapping[str, JSONObject], path: str) -> Errors:
    errors: Errors = []
    names = {text(container, "name") for _, container in objects(spec, "containers")}
    grace = number(spec.get("terminationGracePeriodSeconds"))
    for index, container in objects(spec, "initContainers"):
        where = f"{path}.initContainers[{index}]"
        errors += validate_container(container, volumes, where)
        policy = container.get("restartPolicy")
        if policy is not None:
            errors += one_of(f"{where}.restartPolicy", policy, ("Always", "Never", "OnFailure"))
        name = text(container, "name")
        if name in names:
            errors.append(duplicate(f"{where}.name", name))
        names.add(name)
        errors += _host_ports([container], f"{path}.initContainers")
        if policy == "Always":
            errors += _lifecycle_and_probes(container, grace, where)
        else:
            errors += [
                forbidden_field(f"{where}.{field}", _ONLY_SIDECARS)
                for field in ("lifecycle", *_PROBES)
                if field in container
            ]
    return errors


def validate_container(container: JSONObject, volumes: Mapping[str, JSONObject], path: str) -> Errors:
    """The rules that init containers share with the others."""
    errors = present(f"{path}.name", text(container, "name"), dns_label)
    if not text(container, "image"):
        errors.append(required(f"{path}.image"))
    policy = container.get("terminationMessagePolicy")
    errors += one_of(f"{path}.terminationMessagePolicy", policy, ("File", "FallbackToLogsOnError"))
    errors += _ports(container, f"{path}.ports")
    errors += _environment(container, f"{path}.env")
    errors += _environment_sources(container, f"{path}.envFrom")
    errors += _mounts(container, volumes, f"{path}.volumeMounts")
    errors += one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), _PULL_POLICIES)
    errors += validate_resources(mapping(container, "resources"), f"{path}.resources")
    return errors + _security(container.get("securityContext"), f"{path}.securityContext")


def validate_images(spec: JSONObject, path: str) -> Errors:
    """What only pods, not templates, have to obey: images have no blanks around them."""
    errors: Errors = []
    for kind in ("containers", "initContainers"):
        for index, container in objects(spec, kind):
            image = text(container, "image")
            if image and image != image.strip():
                complaint = "must not have leading or trailing whitespace"
                errors.append(invalid_value(f"{path}.{kind}[{index}].image", image, complaint))
    return errors


def _ports(container: JSONObject, path: str) -> Errors:
    errors: Errors = []
    names: set[str] = set()
    for index, entry in objects(container, "ports"):
        where = f"{path}[{index}]"
        name = text(entry, "name")
        if name:
            wrong = matching(f"{where}.name", name, port_name)
            errors += wrong
            if not wrong and name in names:
                errors.append(duplicate(f"{where}.name", name))
            names.add(name)
        if not entry.get("containerPort"):
            errors.append(required(f"{where}.containerPort"))
        else:
            errors += port(f"{where}.containerPort", entry["containerPort"])
        if entry.get("hostPort"):
            errors += port(f"{where}.hostPort", entry["hostPort"])
        errors += one_of(f"{where}.protocol", entry.get("protocol"), PROTOCOLS)
    return errors


def _host_ports(containers: list[JSONObject], path: str) -> Errors:
    errors: Errors = []
    taken: set[str] = set()
    for position, container in enumerate(containers):
        for index, entry in objects(container, "ports"):
            if not entry.get("hostPort"):
                continue
            this = f"{text(entry, 'protocol')}/{text(entry, 'hostIP')}/{entry['hostPort']}"
            if this in taken:
                errors.append(duplicate(f"{path}[{position}].ports[{index}].hostPort", this))
            taken.add(this)
    return errors


def _environment(container: JSONObject, path: str) -> Errors:
    errors: Errors = []
    for index, variable in objects(container, "env"):
        where = f"{path}[{index}]"
        errors += present(f"{where}.name", text(variable, "name"), environment_name)
        source = variable.get("valueFrom")
        if isinstance(source, dict):
            errors += _environment_source(variable, source, f"{where}.valueFrom")
    return errors


def _environment_source(variable: JSONObject, source: JSONObject, path: str) -> Errors:
    errors: Errors = []
    if isinstance(field := source.get("fieldRef"), dict):
        errors += validate_field_reference(field, ENVIRONMENT_FIELDS, f"{path}.fieldRef")
    if isinstance(resource := source.get("resourceFieldRef"), dict):
        errors += validate_resource_reference(resource, CONTAINER_RESOURCES, f"{path}.resourceFieldRef")
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if isinstance(reference := source.get(kind), dict):
            errors += matching(f"{path}.{kind}.name", text(reference, "name"), dns_subdomain)
            errors += present(f"{path}.{kind}.key", text(reference, "key"), config_key)
    if not source:
        complaint = (
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        )
        errors.append(invalid_value(path, "", complaint))
    elif text(variable, "value"):
        errors.append(invalid_value(path, "", "may not be specified when `value` is not empty"))
    elif len(source) > 1:
        errors.append(invalid_value(path, "", "may not have more than one field specified at a time"))
    return errors


def _environment_sources(container: JSONObject, path: str) -> Errors:
    errors: Errors = []
    for index, source in objects(container, "envFrom"):
        where = f"{path}[{index}]"
        if prefix := text(source, "prefix"):
            errors += matching(f"{where}.prefix", prefix, environment_name)
        given = [kind for kind in ("configMapRef", "secretRef") if kind in source]
        for kind in given:
            errors += present(f"{where}.{kind}.name", text(source, kind, "name"), dns_subdomain)
        if not given:
            errors.append(invalid_value(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(invalid_value(path, "", "may not have more than one field specified at a time"))
    return errors


def _mounts(container: JSONObject, volumes: Mapping[str, JSONObject], path: str) -> Errors:
    errors: Errors = []
    mounted: set[str] = set()
    for index, mount in objects(container, "volumeMounts"):
        where = f"{path}[{index}]"
        name, mount_path = text(mount, "name"), text(mount, "mountPath")
        if not name:
            errors.append(required(f"{where}.name"))
        if name not in volumes:
            errors.append(FieldError("FieldValueNotFound", f"{where}.name", name))
        if not mount_path:
            errors.append(required(f"{where}.mountPath"))
        if mount_path in mounted:
            errors.append(invalid_value(f"{where}.mountPath", mount_path, "must be unique"))
        mounted.add(mount_path)
        inner, expression = text(mount, "subPath"), text(mount, "subPathExpr")
        if inner:
            errors += local_path(f"{path}.subPath", inner)
        if expression:
            if inner:
                complaint = "subPathExpr and subPath are mutually exclusive"
                errors.append(invalid_value(f"{where}.subPathExpr", expression, complaint))
            errors += local_path(f"{path}.subPathExpr", expression)
        propagation = mount.get("mountPropagation")
        if propagation is not None:
            known = ("Bidirectional", "HostToContainer", "None")
            errors += one_of(f"{path}.mountPropagation", propagation, known)
            privileged = mapping(container, "securityContext").get("privileged") is True
            if propagation == "Bidirectional" and not privileged:
                complaint = "Bidirectional mount propagation is available only to privileged containers"
                errors.append(forbidden_field(f"{path}.mountPropagation", complaint))
    return errors


def _lifecycle_and_probes(container: JSONObject, grace: int, path: str) -> Errors:
    errors: Errors = []
    for hook in ("postStart", "preStop"):
        handler = mapping(container, "lifecycle").get(hook)
        if isinstance(handler, dict):
            errors += _handler(handler, grace, f"{path}.lifecycle.{hook}")
    for name in _PROBES:
        probe = container.get(name)
        if isinstance(probe, dict):
            errors += _probe(name, probe, grace, f"{path}.{name}")
    return errors


def _probe(name: str, probe: JSONObject, grace: int, path: str) -> Errors:
    errors = _handler(probe, grace, path)
    numbers = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    errors += not_negative_fields(path, probe, *numbers)
    limit = probe.get("terminationGracePeriodSeconds")
    if limit is not None:
        if name == "readinessProbe":
            where = f"{path}.terminationGracePeriodSeconds"
            errors.append(invalid_value(where, limit, "must not be set for readinessProbes"))
        elif number(limit) <= 0:
            errors.append(invalid_value(f"{path}.terminationGracePeriodSeconds", limit, "must be greater than 0"))
    if name != "readinessProbe" and probe.get("successThreshold") != 1:
        errors.append(invalid_value(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return errors


def _handler(handler: JSONObject, grace: int, path: str) -> Errors:
    errors: Errors = []
    given = [kind for kind in ("exec", "httpGet", "tcpSocket", "grpc", "sleep") if kind in handler]
    if not given:
        return [required(path, "must specify a handler type")]
    for position, kind in enumerate(given):
        where = f"{path}.{kind}"
        if position:
            errors.append(forbidden_field(where, "may not specify more than 1 handler type"))
            continue
        action = mapping(handler, kind)
        if kind == "exec":
            if not items(action, "command"):
                errors.append(required(f"{where}.command"))
        elif kind == "httpGet":
            errors += _http(action, where)
        elif kind == "tcpSocket":
            errors += port_or_name(f"{where}.port", action.get("port"))
        elif kind == "grpc":
            errors += port(f"{where}.port", action.get("port"))
        elif not 0 <= number(action.get("seconds")) <= grace:
            complaint = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
            errors.append(invalid_value(where, action.get("seconds"), complaint))
    return errors


def _http(action: JSONObject, path: str) -> Errors:
    errors = [] if text(action, "path") else [required(f"{path}.path")]
    errors += port_or_name(f"{path}.port", action.get("port"))
    errors += one_of(f"{path}.scheme", action.get("scheme"), ("HTTP", "HTTPS"))
    for _, header in objects(action, "httpHeaders"):
        errors += matching(f"{path}.httpHeaders", text(header, "name"), http_header)
    return errors


# A security context as kube-apiserver holds it: the fields under Go's names, in their order.
_INTERNAL_SECURITY = {
    "Capabilities": "capabilities",
    "Privileged": "privileged",
    "SELinuxOptions": "seLinuxOptions",
    "WindowsOptions": "windowsOptions",
    "RunAsUser": "runAsUser",
    "RunAsGroup": "runAsGroup",
    "RunAsNonRoot": "runAsNonRoot",
    "ReadOnlyRootFilesystem": "readOnlyRootFilesystem",
    "AllowPrivilegeEscalation": "allowPrivilegeEscalation",
    "ProcMount": "procMount",
    "SeccompProfile": "seccompProfile",
    "AppArmorProfile": "appArmorProfile",
}


def _security(security: JSONValue, path: str) -> Errors:
    if not isinstance(security, dict):
        return []
    errors = validate_ids(security, path, "runAsUser", "runAsGroup")
    if security.get("allowPrivilegeEscalation") is False:
        internal: JSONObject = {shown: security.get(name) for shown, name in _INTERNAL_SECURITY.items()}
        if security.get("privileged") is True:
            complaint = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(StructError("FieldValueInvalid", path, internal, complaint))
        if "CAP_SYS_ADMIN" in items(security, "capabilities", "add"):
            complaint = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(StructError("FieldValueInvalid", path, internal, complaint))
    return errors


def validate_ids(security: JSONObject, path: str, *names: str) -> Errors:
    """User and group ids are 32-bit numbers."""
    return [
        invalid_value(f"{path}.{name}", security[name], between(0, _HIGHEST_ID))
        for name in names
        if name in security and not 0 <= number(security[name]) <= _HIGHEST_ID
    ]
