"""API objects: models, kinds, metadata, selectors, and the conversion between JSON and Python types.

Kubernetes' own kinds are in `kubewright.api.<group>.<version>`, for example `kubewright.api.apps.v1.Deployment`.
"""

from kubewright.api.codec import decode, encode, from_json, to_json
from kubewright.api.dynamic import Dynamic, PartialObject, metadata_only
from kubewright.api.errors import DecodeError, KubernetesError
from kubewright.api.int_or_string import IntOrString
from kubewright.api.kinds import GroupVersionKind, ObjectKey
from kubewright.api.markers import (
    AtLeastOneOf,
    AtMostOneOf,
    Atomic,
    Base64,
    Choice,
    ExactlyOneOf,
    Format,
    Immutable,
    Int32,
    Int64,
    JSONInput,
    JSONValue,
    ListMap,
    ListSet,
    Rule,
)
from kubewright.api.meta import Condition, LabelSelector, ListMeta, ObjectMeta, OwnerReference
from kubewright.api.model import Model
from kubewright.api.owners import set_controller_reference, set_owner_reference
from kubewright.api.partials import partial
from kubewright.api.quantity import Quantity
from kubewright.api.resources import Column, Object, Resource, ResourceInfo, Scale, resource, resource_info
from kubewright.api.selectors import Fields, Labels
from kubewright.api.time import MicroTime, Time, now

__all__ = [
    "AtLeastOneOf",
    "AtMostOneOf",
    "Atomic",
    "Base64",
    "Choice",
    "Column",
    "Condition",
    "DecodeError",
    "Dynamic",
    "ExactlyOneOf",
    "Fields",
    "Format",
    "GroupVersionKind",
    "Immutable",
    "Int32",
    "Int64",
    "IntOrString",
    "JSONInput",
    "JSONValue",
    "KubernetesError",
    "LabelSelector",
    "Labels",
    "ListMap",
    "ListMeta",
    "ListSet",
    "MicroTime",
    "Model",
    "Object",
    "ObjectKey",
    "ObjectMeta",
    "OwnerReference",
    "PartialObject",
    "Quantity",
    "Resource",
    "ResourceInfo",
    "Rule",
    "Scale",
    "Time",
    "decode",
    "encode",
    "from_json",
    "metadata_only",
    "now",
    "partial",
    "resource",
    "resource_info",
    "set_controller_reference",
    "set_owner_reference",
    "to_json",
]
