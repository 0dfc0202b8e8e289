"""What the real server's admission plugins do to every pod: a service account and its token, a priority, tolerations.

`admit_pod` runs them in the real server's order. Each may refuse the pod with 403.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.apimachinery.document import at, inside, items, mapping, text
from kubewright.controlplane.embedded.apimachinery.status import StatusError, forbidden
from kubewright.controlplane.embedded.rest.call import Call, ObjectStore

_MIRROR = "kubernetes.io/config.mirror"
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_VOLUME = "kube-api-access-"  # noqa: S105 (the name of a volume)
_TOKEN_SECONDS = 3607
_ONLY_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"
_TRUE = frozenset(("1", "t", "T", "true", "TRUE", "True"))
_ACCOUNT_PATIENCE = 1.35
_PRIORITY_CLASSES = "/scheduling.k8s.io/priorityclasses/"
_TOLERATED = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS = 300


def admit_pod(call: Call, pod: JSONObject, old: JSONObject | None, plugins: Collection[str]) -> None:
    """Complete a pod that is created, or replaced when there is an `old` one, by these plugins. Raises StatusError."""
    if old is None:
        if "ServiceAccount" in plugins:
            _give_service_account(call, pod)
        _give_priority(call, pod)
    else:
        _keep_priority(pod, old)
    _give_tolerations(pod)


def check_priority_class(call: Call, new: JSONObject, old: JSONObject | None) -> None:
    """Only one priority class is the one of pods that name none. Raises StatusError."""
    default = _default_class(call)
    if new.get("globalDefault") is not True or default is None:
        return
    name = text(default, "metadata", "name")
    if old is None or name != text(new, "metadata", "name"):
        raise forbidden(
            "priorityclasses",
            "scheduling.k8s.io",
            text(new, "metadata", "name"),
            f"PriorityClass {name} is already marked as default. Only one default can exist",
        )


def is_resize(call: Call) -> bool:
    """Whether a request changes the resources of a pod's containers in place."""
    return call.target.subresource == "resize" and call.resource.plural == "pods"


def displayed_name(obj: JSONObject) -> str:
    """The name of a new object in a refusal: nothing is generated yet when it is admitted."""
    return text(obj, "metadata", "name") or text(obj, "metadata", "generateName") or "Unknown"


def _refused(pod: JSONObject, why: str) -> StatusError:
    return forbidden("pods", "", displayed_name(pod), why)


# Service accounts


class AccountMissing(StatusError):
    """403 for a pod whose namespace has no account `default`: the request waits for its creation."""

    def __init__(self, key: str, refusal: StatusError) -> None:
        super().__init__(refusal.code, refusal.reason, refusal.message, details=refusal.details)
        self._key = key

    async def come(self, store: ObjectStore) -> None:
        """Wait until the account exists, as long as the real server does."""
        subscription = store.watch(self._key, store.revision)
        try:
            async with asyncio.timeout(_ACCOUNT_PATIENCE):
                while store.get(self._key) is None and await subscription.changes():
                    pass
        except TimeoutError:
            pass
        finally:
            subscription.close()


def _give_service_account(call: Call, pod: JSONObject) -> None:
    """A pod runs as a service account, whose token is mounted into each of its containers."""
    spec = inside(pod, "spec")
    if _MIRROR in mapping(pod, "metadata", "annotations"):
        # A kubelet runs it from a file, and would not know it again if anything were added.
        if text(spec, "serviceAccountName"):
            raise _refused(pod, "a mirror pod may not reference service accounts")
        return
    namespace, name = call.target.namespace, text(spec, "serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    key = f"/core/serviceaccounts/{namespace}/{name}"
    entry = call.services.store.get(key)
    if entry is None:
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise AccountMissing(key, _refused(pod, why)) if name == "default" else _refused(pod, why)
    wanted = spec.get("automountServiceAccountToken")
    if wanted is None:
        wanted = entry.value.get("automountServiceAccountToken")
    if wanted is not False:
        _mount_token(call, spec)
    secrets = items(entry.value, "imagePullSecrets")
    if secrets and not items(spec, "imagePullSecrets"):
        spec["imagePullSecrets"] = [{"name": text(secret, "name")} for secret in secrets]
    if text(entry.value, "metadata", "annotations", _ONLY_MOUNTABLE) in _TRUE:
        for why in _not_mountable(spec, entry.value):
            raise _refused(pod, why)


def _secrets(spec: JSONObject) -> Iterator[tuple[str, str]]:
    """The secrets that containers read their environment from, each with a description of where."""
    for role, word in (("initContainers", "init container"), ("containers", "container")):
        for container in items(spec, role):
            who = f"{word} {text(container, 'name')}"
            for variable in items(container, "env"):
                if name := text(variable, "valueFrom", "secretKeyRef", "name"):
                    yield f"{who} with envVar {text(variable, 'name')}", name
            for source in items(container, "envFrom"):
                if name := text(source, "secretRef", "name"):
                    yield f"{who} with envFrom", name


def _not_mountable(spec: JSONObject, account: JSONObject) -> Iterator[str]:
    """Why a pod may not use the secrets that its service account does not list."""
    owner = text(account, "metadata", "name")
    listed = {text(secret, "name") for secret in items(account, "secrets")}
    for volume in items(spec, "volumes"):
        name = text(volume, "secret", "secretName")
        if mapping(volume, "secret") and name not in listed:
            yield (
                f'volume with secret.secretName="{name}" is not allowed because service account {owner} '
                "does not reference that secret"
            )
    for where, name in _secrets(spec):
        if name not in listed:
            yield (
                f'{where} referencing secret.secretName="{name}" is not allowed because service account {owner} '
                "does not reference that secret"
            )
    pulled = {text(secret, "name") for secret in items(account, "imagePullSecrets")}
    for index, secret in enumerate(items(spec, "imagePullSecrets")):
        if text(secret, "name") not in pulled:
            yield (
                f'imagePullSecrets[{index}].name="{text(secret, "name")}" is not allowed because service account '
                f"{owner} does not reference that imagePullSecret"
            )


def _mount_token(call: Call, spec: JSONObject) -> None:
    """Mount the token where nothing else is; the volume is added when that was done anywhere and it is not there."""
    volumes = items(spec, "volumes")
    there = next((name for volume in volumes if (name := text(volume, "name")).startswith(_TOKEN_VOLUME)), "")
    volume = there or f"{_TOKEN_VOLUME}{call.services.suffix()}"
    mounted = False
    for role in ("initContainers", "containers"):
        for container in items(spec, role):
            mounts = items(container, "volumeMounts")
            if isinstance(container, dict) and all(text(mount, "mountPath") != _MOUNT_PATH for mount in mounts):
                token: JSONObject = {"name": volume, "readOnly": True, "mountPath": _MOUNT_PATH}
                container["volumeMounts"] = [*mounts, token]
                mounted = True
    if mounted and not there:
        spec["volumes"] = [*volumes, _token_volume(volume)]


def _token_volume(name: str) -> JSONValue:
    index: JSONValue = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [index]}},
            ],
            "defaultMode": 420,
        },
    }


# Priorities


def _give_priority(call: Call, pod: JSONObject) -> None:
    """The number that the name of a priority class stands for; a pod cannot choose it."""
    spec = inside(pod, "spec")
    priority, policy = _priority(call, pod, spec)
    stated = spec.get("priority")
    if stated is not None and stated != priority:
        raise _refused(
            pod,
            f"the integer value of priority ({stated}) must not be provided in pod spec; "
            f"priority admission controller computed {priority} from the given PriorityClass name",
        )
    spec["priority"] = priority
    if not policy:
        return
    preemption = spec.get("preemptionPolicy")
    if preemption is not None and preemption != policy:
        raise _refused(
            pod,
            f"the string value of PreemptionPolicy ({preemption}) must not be provided in pod spec; "
            f"priority admission controller computed {policy} from the given PriorityClass name",
        )
    spec["preemptionPolicy"] = policy


def _priority(call: Call, pod: JSONObject, spec: JSONObject) -> tuple[JSONValue, str]:
    name = text(spec, "priorityClassName")
    if name:
        entry = call.services.store.get(f"{_PRIORITY_CLASSES}{name}")
        if entry is None:
            raise _refused(pod, f"no PriorityClass with name {name} was found")
        chosen = entry.value
    elif (default := _default_class(call)) is not None:
        chosen = default
        spec["priorityClassName"] = text(default, "metadata", "name")
    else:
        return 0, "PreemptLowerPriority"
    return _value(chosen), text(chosen, "preemptionPolicy")


def _default_class(call: Call) -> JSONObject | None:
    """The class of pods that name none. Of several, which only a race could make, the one with the lowest value."""
    entries = call.services.store.range(_PRIORITY_CLASSES).entries
    defaults = [entry.value for entry in entries if entry.value.get("globalDefault") is True]
    return min(defaults, key=_value, default=None)


def _value(priority_class: JSONObject) -> int:
    value = at(priority_class, "value")
    return value if isinstance(value, int) else 0


def _keep_priority(pod: JSONObject, old: JSONObject) -> None:
    spec = inside(pod, "spec")
    for name in ("priority", "preemptionPolicy"):
        stored = at(old, "spec", name)
        if spec.get(name) is None and stored is not None:
            spec[name] = stored


# Tolerations


def _give_tolerations(pod: JSONObject) -> None:
    """A pod tolerates a node that is not ready or unreachable for five minutes, unless it sets its own."""
    spec = inside(pod, "spec")
    tolerations = items(spec, "tolerations")
    added: list[JSONValue] = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
        for key in _TOLERATED
        if not any(
            text(toleration, "key") in ("", key) and text(toleration, "effect") in ("", "NoExecute")
            for toleration in tolerations
        )
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]
