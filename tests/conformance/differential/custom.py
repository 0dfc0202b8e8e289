"""A custom kind, and what may be in its objects."""

from __future__ import annotations

from tests.conformance.differential.generators import Family, operations, optional, required, some, values
from tests.conformance.differential.kinds import changed_data, data
from tests.conformance.differential.sides import CUSTOM_GROUP, OWN, uncollected

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text

gear_specs = optional(
    size=values(1, 2, 5, 6, 0, "1", True),
    color=values("red", "green", "blue", 1),
    teeth=some(required(name=values("a", "b"), length=values(1, 2)) | required(name=values("a", "c"))),
    tags=some(values("x", "y")),
    steps=some(values("x", "y", {"a": True})),
    options=data,
    atomic=data,
)
GEARS = Family(
    path="/apis/differential.example.com/v1/namespaces/{namespace}/gears",
    api_version="differential.example.com/v1",
    kind="Gear",
    contents=required(spec=gear_specs) | optional(spec=gear_specs) | required(spec=gear_specs, unknown=values(1)),
    changes=optional(
        spec=optional(
            size=values(None, 3, 9, "1"),
            color=values(None, "green"),
            teeth=values(None, [{"name": "a", "length": 7}], [{"length": 3}]),
            options=changed_data,
            atomic=changed_data,
        )
    ),
    operations=operations(
        ["/spec", "/spec/size", "/spec/teeth/0", "/spec/teeth/-", "/spec/options/a", "/spec/tags/0"],
        values(1, 2, "x", {"name": "d"}, {}),
    ),
    statuses=optional(phase=values("Up", "Down", 1), size=values(1, 2)),
    # The real garbage collector learns of a new custom kind only half a minute later.
    propagation=("", "Background"),
)
GEAR_DEFINITION: JSONObject = {
    "metadata": {"name": "gears.differential.example.com"},
    "spec": {
        "group": "differential.example.com",
        "scope": "Namespaced",
        "names": {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "default": {},
                                "properties": {
                                    "size": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
                                    "color": {"type": "string", "enum": ["red", "green"]},
                                    "teeth": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": {"type": "string"},
                                                "length": {"type": "integer", "default": 4},
                                            },
                                        },
                                    },
                                    "tags": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "set",
                                        "items": {"type": "string"},
                                    },
                                    "steps": {"type": "array", "items": {"type": "string"}},
                                    "options": {"type": "object", "additionalProperties": {"type": "string"}},
                                    "atomic": {
                                        "type": "object",
                                        "x-kubernetes-map-type": "atomic",
                                        "additionalProperties": {"type": "string"},
                                    },
                                },
                            },
                            "status": {
                                "type": "object",
                                "properties": {"phase": {"type": "string"}, "size": {"type": "integer"}},
                            },
                        },
                    }
                },
            }
        ],
    },
}


def is_evolving(definition: JSONObject) -> bool:
    """Whether the names of a definition still have to be accepted, or its objects to be deleted."""
    if uncollected(definition) or "customresourcecleanup.apiextensions.k8s.io" in (
        items(definition, "metadata", "finalizers") if text(definition, "metadata", "deletionTimestamp") else []
    ):
        return True
    if text(definition, "kind") != "CustomResourceDefinition" or text(definition, "metadata", "deletionTimestamp"):
        return False
    states = {
        text(condition, "type"): text(condition, "status") for condition in items(definition, "status", "conditions")
    }
    accepted, names = mapping(definition, "status", "acceptedNames"), mapping(definition, "spec", "names")
    if states.get("NamesAccepted") == "True":
        # The real server establishes it by another write, a moment after it has accepted the names.
        return states.get("Established") != "True" or accepted != names
    return "Established" not in states


anything: JSONObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
schemas = values(
    {"openAPIV3Schema": anything},
    {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "string", "maxLength": 3}}}},
    {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "integer", "default": 1, "format": "odd"}}}},
    {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "array"}}}},
    {"openAPIV3Schema": {"properties": {"spec": {"type": "object", "default": 1}}}},
    {},
)
columns = some(
    required(
        name=values("Size", "Age"), type=values("integer", "date", "wrong"), jsonPath=values(".spec.size", "wrong")
    )
)
first_versions = required(name=values("v1"), served=values(True), storage=values(True), schema=schemas) | required(
    name=values("v1", "v1beta1"),
    served=values(True, False),
    storage=values(True, True, False),
    schema=schemas,
    subresources=values({"status": {}}, {}, {"scale": {"specReplicasPath": ".spec.size"}}),
    # Not empty: in what it shows of its inside, the real server distinguishes none from an empty list.
    additionalPrinterColumns=columns.filter(bool),
)
definition_names = required(plural=values(OWN), kind=values("K" + OWN, "K" + OWN, "wrong kind")) | required(
    plural=values(OWN),
    kind=values("K" + OWN),
    singular=values("one" + OWN, ""),
    shortNames=values(["x" + OWN], [], ["Wrong"]),
    categories=values(["all"], []),
)
definition_specs = required(
    group=values(CUSTOM_GROUP),
    scope=values("Namespaced", "Namespaced", "Cluster", "Wrong"),
    names=definition_names,
    versions=some(first_versions).filter(bool),
)
DEFINITIONS = Family(
    path="/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    api_version="apiextensions.k8s.io/v1",
    kind="CustomResourceDefinition",
    contents=required(spec=definition_specs),
    changes=required(
        spec=optional(
            scope=values("Cluster"),
            versions=some(first_versions),
            names=optional(categories=values(None, ["all"]), shortNames=values(None, ["y" + OWN])),
            preserveUnknownFields=values(True, False, None),
            conversion=values(None, {"strategy": "None"}, {"strategy": "Webhook"}),
        )
    ),
    operations=operations(
        ["/spec/versions/0/served", "/spec/versions/1", "/spec/names/shortNames"], values(True, False, ["z" + OWN])
    ),
    propagation=("", "Background"),
    unfinished=is_evolving,
    sequences=20,
    suffix=f".{CUSTOM_GROUP}",
)
