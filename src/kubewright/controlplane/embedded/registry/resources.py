"""What the server serves: one `ResourceType` per kind and version, built-in or defined by a CRD.

A resource type has the names of a kind, how its fields nest, and the rules by which its objects are defaulted, checked
and changed. The rules are small functions in a `Strategy`; the handlers know no kind by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kubewright.api.kinds import GroupVersionKind
from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.status import FieldError
from kubewright.controlplane.embedded.apimachinery.structure import UNTYPED, Structure
from kubewright.controlplane.embedded.auth.users import UserInfo

if TYPE_CHECKING:
    # Which itself knows what a resource type is.
    from kubewright.controlplane.embedded.rest.call import ObjectStore
    from kubewright.controlplane.embedded.rest.suspension import Settled


def _nothing(new: JSONObject) -> None:
    """No rule."""


def _nothing_on_update(new: JSONObject, old: JSONObject) -> None:
    """No rule."""


def _valid(new: JSONObject) -> Sequence[FieldError]:
    return ()


def _valid_update(new: JSONObject, old: JSONObject) -> Sequence[FieldError]:
    return ()


def _no_fields(obj: JSONObject) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """The rules of one kind. Functions change `new` in place; `old` is what is stored and must not be changed.

    Order on create: `default`, admission, `begin_create`, `prepare_create`, `note_requester`, `validate`.
    Order on update: `default`, `begin_update`, `prepare_update` (or `prepare_status`), admission, `validate_update`.
    Metadata (names, uid, generation of custom resources, timestamps, finalizers) is the handlers' work, except
    that `changes_generation` decides whether an update of a built-in kind is a new generation.
    """

    prune: Callable[[JSONObject], list[str]] | None = None
    """Drops what the kind does not have and returns the paths; None: what its structure does not have."""
    default: Callable[[JSONObject], None] = _nothing
    begin_create: Callable[[JSONObject], None] = _nothing
    """Hands out what an object needs of the server; not when it comes to be by a PUT of its status."""
    begin_update: Callable[[JSONObject, JSONObject], None] = _nothing_on_update
    prepare_create: Callable[[JSONObject], None] = _nothing
    note_requester: Callable[[JSONObject, UserInfo], None] | None = None
    """Records the requesting user in a new object, for kinds that have a field for it."""
    prepare_update: Callable[[JSONObject, JSONObject], None] = _nothing_on_update
    prepare_status: Callable[[JSONObject, JSONObject], None] = _nothing_on_update
    validate: Callable[[JSONObject], Sequence[FieldError]] = _valid
    validate_update: Callable[[JSONObject, JSONObject], Sequence[FieldError]] = _valid_update
    validate_status: Callable[[JSONObject, JSONObject], Sequence[FieldError]] = _valid_update
    validate_name: Callable[[str], str | None] | None = None
    """What is wrong with a name; None when nothing is. Default: a DNS subdomain."""
    has_generation: bool = False
    changes_generation: Callable[[JSONObject, JSONObject], bool] | None = None
    """Default: `spec` differs."""
    selectable_fields: Callable[[JSONObject], Mapping[str, str]] = _no_fields
    """Field selectors beyond metadata.name and metadata.namespace, with the object's values."""
    selectable: frozenset[str] = frozenset()
    locked_maps: tuple[str, ...] = ()
    """Fields of which none and an empty one are not the same to `validate_update`, though both are stored as none."""
    reset: Mapping[str, Sequence[Sequence[str]]] | None = None
    """By subresource, the fields that cannot be owned through it. Default: the status, or all but the status."""
    create_on_update: bool = False
    unconditional_update: bool = True
    returns_deleted_object: bool = False
    default_propagation: str = "Background"
    warnings: Callable[[JSONObject, JSONObject | None], Sequence[str]] | None = None
    """Warnings for the client about an object that is stored, given the object before it."""
    begin_deletion: Callable[[JSONObject, str], None] | None = None
    """How an object is marked at the time given, instead of the usual way, when it is first deleted."""
    terminates: bool = False
    """Whether a deletion waits until `spec.finalizers` is empty, as with namespaces."""
    graceful_deletion: Callable[[JSONObject, int | None], int] | None = None
    """Seconds of grace for a deletion (given the requested number); None: the kind has no grace period."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResourceType:
    """One kind in one version, for as long as its definition stays the same."""

    gvk: GroupVersionKind
    plural: str
    singular: str
    namespaced: bool
    list_kind: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: frozenset[str] = frozenset(
        ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    )
    subresources: frozenset[str] = frozenset()
    structure: Structure = UNTYPED
    strategy: Strategy = field(default_factory=Strategy)
    custom: bool = False
    """Defined by a CRD."""
    storage: GroupVersionKind | None = None
    """The version objects are stored in, when it is another one."""
    schema: JSONObject | None = None
    """The OpenAPI schema of a custom resource's version."""
    definition: JSONObject | None = None
    """The CRD this comes from."""
    view: Callable[[ObjectStore, Settled, bool], ObjectStore] | None = None
    """The store as this version sees it, if objects are converted; True: by what a webhook makes of them now."""
    convert: Callable[[JSONObject, str, str, Settled], JSONObject] | None = None
    """An object of one version in another version, if a webhook converts. Raises Suspended."""
    is_dropping: bool = False
    """Whether there may be objects that are stored in a version which the definition has no longer."""
    deprecation: str = ""
    """The warning that is sent with every response of a deprecated version."""

    @property
    def opening(self) -> bytes:
        """How the JSON of an object of this kind begins, up to its metadata; in the real server's order of fields."""
        kind, api_version = f'"kind":"{self.gvk.kind}"', f'"apiVersion":"{self.gvk.api_version}"'
        fields = (api_version, kind) if self.custom else (kind, api_version)
        return f"{{{','.join(fields)},".encode()

    @property
    def list_opening(self) -> bytes:
        """How the JSON of a list of this kind begins, up to the value of its metadata."""
        kind, api_version = f'"kind":"{self.list_kind}"', f'"apiVersion":"{self.gvk.api_version}"'
        fields = (api_version, kind) if self.custom else (kind, api_version)
        return f'{{{",".join(fields)},"metadata":'.encode()

    @property
    def prefix(self) -> str:
        """Where its objects are in the store: shared by all versions of the kind."""
        return f"/{(self.storage or self.gvk).group or 'core'}/{self.plural}/"

    def key(self, namespace: str, name: str) -> str:
        """The key of one object."""
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else f"{self.prefix}{name}"
