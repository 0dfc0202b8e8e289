"""The roles and bindings that every Kubernetes has from the start.

They are in `bootstrap.json`, written by `python -m tools.generate_bootstrap` from what the pinned kube-apiserver makes.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.auth.aggregation import aggregated_rules

_FILE = Path(__file__).with_name("bootstrap.json")


def bootstrap_objects() -> list[JSONObject]:
    """ClusterRoles, ClusterRoleBindings, Roles and RoleBindings, ready to be created; the caller's own copies."""
    objects = cast(list[JSONObject], msgspec.json.decode(_FILE.read_bytes()))
    cluster_roles = [found for found in objects if text(found, "kind") == "ClusterRole"]
    # Some are made of others that are themselves made of others: `admin` of `edit`, `edit` of `view`.
    while any(_completed(role, cluster_roles) for role in cluster_roles):
        pass
    return objects


def _completed(role: JSONObject, cluster_roles: list[JSONObject]) -> bool:
    """Give an aggregating role its rules; whether they changed."""
    rules = aggregated_rules(role, cluster_roles)
    if rules is None or rules == role.get("rules"):
        return False
    role["rules"] = rules
    return True
