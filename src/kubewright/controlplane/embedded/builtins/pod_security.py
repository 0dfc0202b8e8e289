"""The Pod Security Standards, baseline and restricted: what a pod may not ask for, in which version of Kubernetes.

Each check returns what is wrong, or nothing. They are in the order in which violations are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text

Level = Literal["privileged", "baseline", "restricted"]

LATEST = 35
"""The minor version of Kubernetes in which a check was changed last."""


class Violation(NamedTuple):
    """What a pod does that it may not."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})"


class _Pod(NamedTuple):
    annotations: JSONObject
    spec: JSONObject
    minor: int

    def context(self) -> JSONObject:
        return mapping(self.spec, "securityContext")

    def contexts(self) -> Iterator[tuple[str, JSONObject]]:
        """The names of all containers, and their security contexts."""
        for container in self.containers():
            yield text(container, "name"), mapping(container, "securityContext")

    def containers(self) -> Iterator[JSONValue]:
        for field in ("initContainers", "containers", "ephemeralContainers"):
            yield from items(self.spec, field)

    @property
    def is_windows(self) -> bool:
        return text(self.spec, "os", "name") == "windows"

    @property
    def has_users(self) -> bool:
        """Whether root in the pod is another user on the node."""
        return self.spec.get("hostUsers") is False


def violations(level: Level, minor: int, pod: JSONValue) -> list[Violation]:
    """How a pod, or the template of one, violates the standard of a level in a minor version of Kubernetes."""
    if level == "privileged":
        return []
    minor = min(minor, LATEST)
    given = _Pod(mapping(pod, "metadata", "annotations"), mapping(pod, "spec"), minor)
    checks: list[Callable[[_Pod], Violation | None]] = []
    for check, since, until in _BASELINE:
        # From a version on, a stricter check of the level restricted takes the place of this one.
        if minor >= since and (level == "baseline" or minor < until):
            checks.append(check)
    if level == "restricted":
        checks += [check for check, since in _RESTRICTED if minor >= since]
    return [found for check in checks if (found := check(given)) is not None]


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _plural(word: str, names: Iterable[str], more: str = "") -> str:
    return word if len(list(names)) == 1 else more or f"{word}s"


def _named(names: list[str], word: str = "container") -> str:
    return f"{_plural(word, names)} {_quoted(names)}"


def _setters(pod: bool, containers: list[str]) -> str:
    return " and ".join([*(["pod"] if pod else []), *([_named(containers)] if containers else [])])


# Baseline


def _app_armor(pod: _Pod) -> Violation | None:
    allowed = ("RuntimeDefault", "Localhost")

    def bad(context: JSONObject) -> str:
        kind = text(context, "appArmorProfile", "type")
        return kind if mapping(context, "appArmorProfile") and kind not in allowed else ""

    containers = [name for name, context in pod.contexts() if bad(context)]
    values = sorted({bad(context) for context in (pod.context(), *(each for _, each in pod.contexts()))} - {""})
    setters = [_setters(bool(bad(pod.context())), containers)] if values else []
    notes = sorted(
        f'{key}="{value}"'
        for key, value in pod.annotations.items()
        if key.startswith("container.apparmor.security.beta.kubernetes.io/")
        and isinstance(value, str)
        and value not in ("", "runtime/default")
        and not value.startswith("localhost/")
    )
    if notes:
        setters.append(_plural("annotation", notes))
        values += notes
    if not setters:
        return None
    detail = f"{' and '.join(setters)} must not set AppArmor profile type to {_quoted(values)}"
    return Violation(_plural("forbidden AppArmor profile", values), detail)


def _default_capabilities(pod: _Pod) -> Violation | None:
    added = {name: _names(context, "add") - _DEFAULT_CAPABILITIES for name, context in pod.contexts()}
    containers = [name for name, found in added.items() if found]
    if not containers:
        return None
    every = sorted(set().union(*added.values()))
    detail = f"{_named(containers)} must not include {_quoted(every)} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def _names(context: JSONObject, field: str) -> set[str]:
    return {each for each in items(context, "capabilities", field) if isinstance(each, str)}


def _host_namespaces(pod: _Pod) -> Violation | None:
    found = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field) is True]
    return Violation("host namespaces", ", ".join(found)) if found else None


def _host_paths(pod: _Pod) -> Violation | None:
    found = [text(volume, "name") for volume in items(pod.spec, "volumes") if at(volume, "hostPath") is not None]
    return Violation("hostPath volumes", _named(found, "volume")) if found else None


def _host_ports(pod: _Pod) -> Violation | None:
    ports = {
        text(container, "name"): {str(port) for each in items(container, "ports") if (port := at(each, "hostPort"))}
        for container in pod.containers()
    }
    containers = [name for name, found in ports.items() if found]
    if not containers:
        return None
    every = sorted(set().union(*ports.values()))
    verb = "uses" if len(containers) == 1 else "use"
    return Violation("hostPort", f"{_named(containers)} {verb} {_plural('hostPort', every)} {', '.join(every)}")


def _probe_hosts(pod: _Pod) -> Violation | None:
    hosts: dict[str, set[str]] = {}
    for container in pod.containers():
        handlers = [at(container, field) for field in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [at(container, "lifecycle", field) for field in ("postStart", "preStop")]
        found = {text(handler, how, "host") for handler in handlers for how in ("httpGet", "tcpSocket")} - {""}
        if found:
            hosts.setdefault(text(container, "name"), set()).update(found)
    if not hosts:
        return None
    containers, every = sorted(hosts), sorted(set().union(*hosts.values()))
    verb = "uses" if len(containers) == 1 else "use"
    detail = f"{_named(containers)} {verb} {_plural('probe or lifecycle host', every)} {_quoted(every)}"
    return Violation("probe or lifecycle host", detail)


def _privileged(pod: _Pod) -> Violation | None:
    found = [name for name, context in pod.contexts() if context.get("privileged") is True]
    return Violation("privileged", f"{_named(found)} must not set securityContext.privileged=true") if found else None


def _proc_mount(pod: _Pod) -> Violation | None:
    found = {name: text(context, "procMount") for name, context in pod.contexts()}
    containers = [name for name, kind in found.items() if kind not in ("", "Default")]
    if not containers:
        return None
    kinds = sorted({found[name] for name in containers})
    return Violation("procMount", f"{_named(containers)} must not set securityContext.procMount to {_quoted(kinds)}")


def _proc_mount_of_users(pod: _Pod) -> Violation | None:
    return None if pod.minor >= 35 and pod.has_users else _proc_mount(pod)


def _se_linux(pod: _Pod) -> Violation | None:
    allowed = {"", "container_t", "container_init_t", "container_kvm_t"} | (
        {"container_engine_t"} if pod.minor >= 31 else set()
    )

    def bad(context: JSONObject) -> bool:
        options = mapping(context, "seLinuxOptions")
        return text(options, "type") not in allowed or bool(text(options, "user") or text(options, "role"))

    containers = [name for name, context in pod.contexts() if bad(context)]
    if not containers and not bad(pod.context()):
        return None
    every = [mapping(context, "seLinuxOptions") for context in (pod.context(), *(each for _, each in pod.contexts()))]
    types = sorted({text(options, "type") for options in every} - allowed)
    data = [f"{_plural('type', types)} {_quoted(types)}"] if types else []
    data += [f"{field} may not be set" for field in ("user", "role") if any(text(each, field) for each in every)]
    setters = _setters(bad(pod.context()), containers)
    return Violation("seLinuxOptions", f"{setters} set forbidden securityContext.seLinuxOptions: {'; '.join(data)}")


def _seccomp(pod: _Pod) -> Violation | None:
    def bad(context: JSONObject) -> str:
        kind = text(context, "seccompProfile", "type")
        return kind if mapping(context, "seccompProfile") and kind not in ("RuntimeDefault", "Localhost") else ""

    containers = [name for name, context in pod.contexts() if bad(context)]
    values = sorted({bad(context) for context in (pod.context(), *(each for _, each in pod.contexts()))} - {""})
    if not values:
        return None
    setters = _setters(bool(bad(pod.context())), containers)
    detail = f"{setters} must not set securityContext.seccompProfile.type to {_quoted(values)}"
    return Violation("seccompProfile", detail)


def _sysctls(pod: _Pod) -> Violation | None:
    allowed = {name for since, names in _SYSCTLS for name in names if pod.minor >= since}
    found = [name for each in items(pod.context(), "sysctls") if (name := text(each, "name")) not in allowed]
    return Violation("forbidden sysctls", ", ".join(found)) if found else None


def _windows_host_process(pod: _Pod) -> Violation | None:
    def bad(context: JSONObject) -> bool:
        return at(context, "windowsOptions", "hostProcess") is True

    setters = _setters(bad(pod.context()), [name for name, context in pod.contexts() if bad(context)])
    detail = f"{setters} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", detail) if setters else None


# Restricted


def _no_escalation(pod: _Pod) -> Violation | None:
    if pod.minor >= 25 and pod.is_windows:
        return None
    found = [name for name, context in pod.contexts() if context.get("allowPrivilegeEscalation") is not False]
    detail = f"{_named(found)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail) if found else None


def _few_capabilities(pod: _Pod) -> Violation | None:
    if pod.minor >= 25 and pod.is_windows:
        return None
    keeping = [name for name, context in pod.contexts() if "ALL" not in _names(context, "drop")]
    added = {name: _names(context, "add") - {"NET_BIND_SERVICE"} for name, context in pod.contexts()}
    adding = [name for name, found in added.items() if found]
    details = [f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    if adding:
        every = _quoted(sorted(set().union(*added.values())))
        details.append(f"{_named(adding)} must not include {every} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def _volumes(pod: _Pod) -> Violation | None:
    found = {
        text(volume, "name"): next((kind for kind in volume if kind != "name"), "unknown")
        for volume in items(pod.spec, "volumes")
        if isinstance(volume, dict) and not _VOLUMES & volume.keys()
    }
    if not found:
        return None
    names, kinds = list(found), sorted(set(found.values()))
    verb = "uses" if len(names) == 1 else "use"
    detail = f"{_named(names, 'volume')} {verb} {_plural('restricted volume type', kinds)} {_quoted(kinds)}"
    return Violation("restricted volume types", detail)


def _no_root(pod: _Pod) -> Violation | None:
    if pod.minor >= 35 and pod.has_users:
        return None
    own = pod.context().get("runAsNonRoot")
    explicit = [name for name, context in pod.contexts() if context.get("runAsNonRoot") is False]
    implicit = [name for name, each in pod.contexts() if each.get("runAsNonRoot") is None and own is not True]
    if setters := _setters(own is False, explicit):
        return Violation("runAsNonRoot != true", f"{setters} must not set securityContext.runAsNonRoot=false")
    if implicit:
        detail = f"pod or {_named(implicit)} must set securityContext.runAsNonRoot=true"
        return Violation("runAsNonRoot != true", detail)
    return None


def _no_root_user(pod: _Pod) -> Violation | None:
    if pod.minor >= 35 and pod.has_users:
        return None
    found = [name for name, context in pod.contexts() if context.get("runAsUser") == 0]
    setters = _setters(pod.context().get("runAsUser") == 0, found)
    return Violation("runAsUser=0", f"{setters} must not set runAsUser=0") if setters else None


def _needs_seccomp(pod: _Pod) -> Violation | None:
    if pod.minor >= 25 and pod.is_windows:
        return None
    if (found := _seccomp(pod)) is not None or mapping(pod.context(), "seccompProfile"):
        return found
    implicit = [name for name, context in pod.contexts() if not mapping(context, "seccompProfile")]
    detail = (
        f'pod or {_named(implicit)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    )
    return Violation("seccompProfile", detail) if implicit else None


_DEFAULT_CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
_VOLUMES = frozenset(
    (
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "image",
        "persistentVolumeClaim",
        "projected",
        "secret",
    )
)
_TCP = "net.ipv4.tcp_"
_SYSCTLS = (
    (
        0,
        (
            "kernel.shm_rmid_forced",
            "net.ipv4.ip_local_port_range",
            f"{_TCP}syncookies",
            "net.ipv4.ping_group_range",
            "net.ipv4.ip_unprivileged_port_start",
        ),
    ),
    (27, ("net.ipv4.ip_local_reserved_ports",)),
    (29, (f"{_TCP}keepalive_time", f"{_TCP}fin_timeout", f"{_TCP}keepalive_intvl", f"{_TCP}keepalive_probes")),
    (32, (f"{_TCP}rmem", f"{_TCP}wmem")),
)
_ALWAYS = 1000
# Since which minor version, and until which one in the level restricted.
_BASELINE: tuple[tuple[Callable[[_Pod], Violation | None], int, int], ...] = (
    (_app_armor, 0, _ALWAYS),
    (_default_capabilities, 0, 22),
    (_host_namespaces, 0, _ALWAYS),
    (_host_paths, 0, 0),
    (_host_ports, 0, _ALWAYS),
    (_probe_hosts, 34, _ALWAYS),
    (_privileged, 0, _ALWAYS),
    (_proc_mount_of_users, 0, 35),
    (_se_linux, 0, _ALWAYS),
    (_seccomp, 0, 19),
    (_sysctls, 0, _ALWAYS),
    (_windows_host_process, 0, _ALWAYS),
)
_RESTRICTED: tuple[tuple[Callable[[_Pod], Violation | None], int], ...] = (
    (_no_escalation, 8),
    (_few_capabilities, 22),
    (_proc_mount, 35),
    (_volumes, 0),
    (_no_root, 0),
    (_no_root_user, 23),
    (_needs_seccomp, 19),
)
