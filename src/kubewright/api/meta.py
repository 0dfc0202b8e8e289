"""What every object carries: metadata, owners, conditions, selectors."""

# Annotations are types here, not text: they are needed at every start, and text would have to be compiled.

import copy
from typing import TYPE_CHECKING, Annotated, Literal, Self

from msgspec import Meta, Raw, field
from msgspec.structs import asdict, replace

from kubewright.api.markers import Atomic, Choice, Int64, ListMap, ListSet, StrategicMerge
from kubewright.api.model import BuiltIn, Default, set_field
from kubewright.api.time import Time


class OwnerReference(BuiltIn):
    """Names an object that owns this one: when all owners are gone, the garbage collector deletes it."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


OWNER_NAMESPACE = "_namespace"
"""In the `__dict__` of a reference that was made from its owner: the namespace of the owner, if it has one."""


class LocatedOwnerReference(OwnerReference, dict=True):
    """A reference that remembers the namespace of its owner, which no field of it has.

    In all else, equality, repr and JSON included, it is an OwnerReference; pickled, it becomes one.
    """

    if not TYPE_CHECKING:
        __setattr__ = set_field

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OwnerReference):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.__struct_fields__)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __copy__(self) -> Self:
        copied = replace(self)
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return copy.copy(self)

    def __reduce__(self) -> str | tuple[object, ...]:
        return OwnerReference(**asdict(self)).__reduce__()


LocatedOwnerReference.__name__ = OwnerReference.__name__  # for repr


class ManagedFieldsEntry(BuiltIn):
    """The fields one manager owns, as server-side apply tracks them."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Time | None = None
    fields_type: str = ""
    fields_v1: Raw = Raw(b"{}")  # as the server sent it: large, and rarely read
    subresource: str = ""


class ObjectMeta(BuiltIn):
    """The metadata of an object. Empty means absent: a cluster-scoped object has the namespace ""."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: Time | None = None
    deletion_timestamp: Time | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: Annotated[list[Annotated[OwnerReference, Atomic()]], ListMap("uid"), StrategicMerge("uid")] = []
    finalizers: Annotated[list[str], ListSet(), StrategicMerge()] = []
    managed_fields: Annotated[list[ManagedFieldsEntry], Atomic()] = []


class ListMeta(BuiltIn):
    """The metadata of a list: the revision it shows, and where its next page starts."""

    self_link: str = ""
    resource_version: str = ""
    continue_: str = ""
    remaining_item_count: int | None = None


_CONDITION_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
_CONDITION_REASON = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


class Condition(BuiltIn):
    """One aspect of an object's state. `reason` is a CamelCase word for programs, `message` a sentence for users."""

    # The bounds of Kubernetes' own definition. They are for the server only: a condition that another program wrote
    # before they held must not make its object unreadable.
    type: Annotated[str, Meta(extra_json_schema={"maxLength": 316, "pattern": _CONDITION_TYPE})]
    status: Choice[Literal["True", "False", "Unknown"]]
    observed_generation: Annotated[Int64 | None, Meta(extra_json_schema={"minimum": 0})] = None
    last_transition_time: Time
    reason: Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": 1024, "pattern": _CONDITION_REASON})]
    message: Annotated[str, Meta(extra_json_schema={"maxLength": 32768})] = field(default_factory=Default(""))


class LabelSelectorRequirement(BuiltIn):
    """One requirement of a label selector; `operator` is In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: Annotated[list[str], Atomic()] = []


class LabelSelector(BuiltIn):
    """Selects objects by label: all requirements must hold. Empty selects everything."""

    match_labels: dict[str, str] = {}
    match_expressions: Annotated[list[LabelSelectorRequirement], Atomic()] = []


class FieldSelectorRequirement(BuiltIn):
    """One requirement of a field selector."""

    key: str
    operator: str
    values: Annotated[list[str], Atomic()] = []


class Preconditions(BuiltIn):
    """What must hold of the stored object for a deletion to be carried out."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(BuiltIn):
    """How to delete."""

    api_version: str = ""
    kind: str = ""
    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: Choice[Literal["Orphan", "Background", "Foreground"]] | None = None
    dry_run: Annotated[list[str], Atomic()] = []
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = None


class GroupResource(BuiltIn):
    """Names a resource in any version of its API group."""

    group: str
    resource: str
