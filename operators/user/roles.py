"""What the roles of a workspace may do.

The ClusterRoles `workspace-owner`, `workspace-manager` and `workspace-developer` are deployed with the operator, and
role bindings in workspaces refer to them. Each workspace has Roles with the same rules, for people who read them.
"""

from __future__ import annotations

from kubewright import ObjectMeta
from kubewright.api.rbac.v1 import ClusterRole, PolicyRule

from .names import RBAC, ROLE_LABEL, ROLE_NAMES, RoleName, cluster_role_of

EVERYTHING = [PolicyRule(api_groups=["*"], resources=["*"], verbs=["*"])]

# No secrets, no exec, attach and port-forward, no tokens of service accounts. A wildcard would have them all.
_READABLE: dict[str, list[str]] = {
    "": [
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "namespaces",
        "persistentvolumeclaims",
        "pods",
        "pods/log",
        "pods/status",
        "replicationcontrollers",
        "resourcequotas",
        "serviceaccounts",
        "services",
    ],
    "apps": ["controllerrevisions", "daemonsets", "deployments", "replicasets", "statefulsets"],
    "autoscaling": ["horizontalpodautoscalers"],
    "batch": ["cronjobs", "jobs"],
    "discovery.k8s.io": ["endpointslices"],
    "events.k8s.io": ["events"],
    "networking.k8s.io": ["ingresses", "networkpolicies"],
    "policy": ["poddisruptionbudgets"],
    RBAC: ["rolebindings", "roles"],
}
READABLE = [
    PolicyRule(api_groups=[group], resources=resources, verbs=["get", "list", "watch"])
    for group, resources in _READABLE.items()
]

RULES: dict[RoleName, list[PolicyRule]] = {"Owner": EVERYTHING, "Manager": EVERYTHING, "Developer": READABLE}


def cluster_roles() -> list[ClusterRole]:
    """The ClusterRoles that are deployed with the operator."""
    return [
        ClusterRole(metadata=ObjectMeta(name=cluster_role_of(role), labels={ROLE_LABEL: role}), rules=RULES[role])
        for role in ROLE_NAMES
    ]
