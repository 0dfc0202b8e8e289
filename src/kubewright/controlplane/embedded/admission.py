"""What may change or refuse a write after the rules of its kind: the plugins of the real server that users meet.

Namespaces must exist, pods get their service account's token, and nobody grants rights they do not have.
"""

from __future__ import annotations

from kubewright.api.markers import JSONValue
from kubewright.controlplane.embedded.auth.escalation import RoleWrite, escalation
from kubewright.controlplane.embedded.document import JSONObject, inside, items, text
from kubewright.controlplane.embedded.rest.call import Call
from kubewright.controlplane.embedded.status import StatusError, forbidden, not_found

_RBAC = "rbac.authorization.k8s.io"
_GUARDED = frozenset(("roles", "rolebindings", "clusterroles", "clusterrolebindings"))
_UNDELETABLE = frozenset(("default", "kube-system", "kube-public"))
_MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS = 3607


class Admission:
    """The plugins, in the real server's order."""

    def admit(self, call: Call, new: JSONObject, old: JSONObject | None, operation: str) -> None:
        """Change `new` in place, or raise StatusError."""
        if operation == "CREATE":
            _check_namespace(call)
            if (call.resource.gvk.group, call.resource.plural) == ("", "pods") and not call.target.subresource:
                _give_service_account(call, new)

    def check(self, call: Call, new: JSONObject, old: JSONObject | None, operation: str) -> None:
        """Raise StatusError to refuse."""
        resource = call.resource
        if operation == "DELETE":
            name = text(new, "metadata", "name")
            if (resource.gvk.group, resource.plural) == ("", "namespaces") and name in _UNDELETABLE:
                raise forbidden("namespaces", "", name, "this namespace may not be deleted")
        elif resource.gvk.group == _RBAC and resource.plural in _GUARDED:
            refused = escalation(
                call.services.authorizer,
                RoleWrite(
                    user=call.user,
                    plural=resource.plural,
                    new=new,
                    old=old,
                    namespace=call.target.namespace,
                    name=call.target.name,
                ),
            )
            if refused is not None:
                raise refused


def _check_namespace(call: Call) -> None:
    """Objects live in namespaces that exist and are not about to go."""
    if not call.resource.namespaced:
        return
    # Asking what one may do needs no namespace.
    if call.resource.gvk.group == "authorization.k8s.io":
        return
    name = call.target.namespace
    entry = call.services.store.get(f"/core/namespaces/{name}")
    if entry is None:
        raise not_found("namespaces", "", name)
    if text(entry.value, "metadata", "deletionTimestamp"):
        error = forbidden(
            call.resource.plural,
            call.resource.gvk.group,
            call.target.name,
            f"unable to create new content in namespace {name} because it is being terminated",
        )
        details = error.details or {}
        details["causes"] = [
            {
                "reason": "NamespaceTerminating",
                "message": f"namespace {name} is being terminated",
                "field": "metadata.namespace",
            }
        ]
        raise StatusError(error.code, error.reason, error.message, details=details)


def _give_service_account(call: Call, pod: JSONObject) -> None:
    """A pod runs as a service account, whose token is mounted into each of its containers."""
    spec = inside(pod, "spec")
    name = text(spec, "serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    entry = call.services.store.get(f"/core/serviceaccounts/{call.target.namespace}/{name}")
    if entry is None:
        raise forbidden(
            "pods",
            "",
            text(pod, "metadata", "name"),
            f'error looking up service account {call.target.namespace}/{name}: serviceaccount "{name}" not found',
        )
    wanted = spec.get("automountServiceAccountToken")
    if wanted is None:
        wanted = entry.value.get("automountServiceAccountToken")
    if wanted is False:
        return
    volume = f"kube-api-access-{call.services.suffix()}"
    if _mount(spec, volume):
        volumes = items(spec, "volumes")
        spec["volumes"] = [*volumes, _token_volume(volume)]


def _mount(spec: JSONObject, volume: str) -> bool:
    """Mount the token where nothing else is; True when that was done anywhere."""
    mounted = False
    for role in ("initContainers", "containers"):
        for container in items(spec, role):
            mounts = items(container, "volumeMounts")
            if isinstance(container, dict) and all(text(mount, "mountPath") != _MOUNT_PATH for mount in mounts):
                token: JSONObject = {"name": volume, "readOnly": True, "mountPath": _MOUNT_PATH}
                container["volumeMounts"] = [*mounts, token]
                mounted = True
    return mounted


def _token_volume(name: str) -> JSONValue:
    return {
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {
                    "downwardAPI": {
                        "items": [
                            {
                                "path": "namespace",
                                "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                            }
                        ]
                    }
                },
            ],
            "defaultMode": 420,
        },
    }
