"""JSON in variables of narrower types than the parameter's."""

from kubewright.api import from_json
from kubewright.api.core.v1 import ResourceQuota

limits = {"cpu": "4", "memory": "8Gi"}
metadata = {"name": "quota"}
quota = from_json(ResourceQuota, {"metadata": metadata, "spec": {"hard": limits, "scopes": ["BestEffort"]}})
