"""Putting the server together: store, catalog, identities and admission, and the objects every cluster begins with."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from ipaddress import IPv4Network, IPv6Network
from random import Random, SystemRandom

from kubewright.api.markers import JSONObject
from kubewright.api.time import unix_now
from kubewright.controlplane.embedded.admission.chain import AdmissionChain
from kubewright.controlplane.embedded.apiextensions.definition import definition_strategy
from kubewright.controlplane.embedded.apiextensions.establishing import DefinitionController
from kubewright.controlplane.embedded.apimachinery.document import at, items, mapping, text
from kubewright.controlplane.embedded.auth.always_allow import AlwaysAllow
from kubewright.controlplane.embedded.auth.authenticate import Authenticator
from kubewright.controlplane.embedded.auth.bootstrap import bootstrap_objects
from kubewright.controlplane.embedded.auth.rbac import Authorizer
from kubewright.controlplane.embedded.auth.token_request import TokenIssuer
from kubewright.controlplane.embedded.auth.tokens import TokenSigner
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.embedded.builtins.allocation import Allocator
from kubewright.controlplane.embedded.builtins.boot import boot_objects
from kubewright.controlplane.embedded.builtins.registry import CONVERSIONS, built_in_resources
from kubewright.controlplane.embedded.endpoints.nonresource import NonResourceEndpoints
from kubewright.controlplane.embedded.managedfields.first_managers import first_managers
from kubewright.controlplane.embedded.registry.catalog import Catalog
from kubewright.controlplane.embedded.registry.converted import ConvertedStore
from kubewright.controlplane.embedded.rest.call import Services
from kubewright.controlplane.embedded.server.api_server import APIServer
from kubewright.controlplane.embedded.server.audit import AuditLog
from kubewright.controlplane.embedded.server.faults import Faults
from kubewright.controlplane.embedded.storage.lifetime import Lifetime
from kubewright.controlplane.embedded.storage.saved import SavedStore
from kubewright.controlplane.embedded.storage.store import MemoryStore, StoreChange

ISSUER = "https://kubernetes.default.svc.cluster.local"
SERVICE_NETWORK = IPv4Network("10.0.0.0/24")
_DEFINITION = "apiextensions.k8s.io/v1 CustomResourceDefinition"
_RBAC = "/rbac.authorization.k8s.io/"
_ADMISSION = "/admissionregistration.k8s.io/"
_LIFE_OF_EVENTS = 3600.0
# The letters of generated names: no vowels, so that no words come out.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True)
class Assembled:
    """A server that is ready to answer, and what must run beside it."""

    server: APIServer
    definitions: DefinitionController
    store: MemoryStore
    signer: TokenSigner


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """What can be chosen of a server, as by flags of kube-apiserver."""

    network: IPv4Network | IPv6Network = SERVICE_NETWORK
    """The addresses of services."""
    audiences: Sequence[str] = ()
    """For which tokens are good by default; the issuer when it is empty."""
    always_allow: bool = False
    """Every user may do everything, instead of what roles allow."""
    disabled_plugins: Collection[str] = ()
    """The admission plugins that do nothing, by their names in Kubernetes."""


class _Roles:
    """The roles and bindings in the store."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def cluster_roles(self) -> Iterable[JSONObject]:
        return self._all("clusterroles")

    def cluster_role_bindings(self) -> Iterable[JSONObject]:
        return self._all("clusterrolebindings")

    def roles(self) -> Iterable[JSONObject]:
        return self._all("roles")

    def role_bindings(self) -> Iterable[JSONObject]:
        return self._all("rolebindings")

    def _all(self, plural: str) -> Iterable[JSONObject]:
        return (entry.value for entry in self._store.range(f"{_RBAC}{plural}/").entries)


def assemble(
    *,
    host: str = "127.0.0.1",
    port: int = 6443,
    clock: Callable[[], float] = unix_now,
    tokens: Mapping[str, UserInfo] | None = None,
    signer: TokenSigner | None = None,
    client_ca: str = "",
    patience: float = 3.0,
    random: Random | None = None,
    objects: Iterable[JSONObject] = (),
    options: ServerOptions | None = None,
    saved: SavedStore | None = None,
) -> Assembled:
    """A server with nothing but what every cluster has. `tokens` are static bearer tokens.

    `client_ca` (PEM) is the authority of client certificates, `patience` how many seconds a read waits for a revision.
    `random` makes uids and generated names. `objects` are there from the beginning, and complete. `saved` is what
    another server has left, with which this one goes on.
    """
    options = options or ServerOptions()
    source = random or SystemRandom()

    def moment() -> datetime:
        return datetime.fromtimestamp(clock(), UTC)

    store = MemoryStore(lifetimes={"/core/events/": Lifetime(_LIFE_OF_EVENTS, clock)})
    if saved is not None:
        saved.fill(store)
    allocator = Allocator(
        options.network,
        addresses_in_use=lambda: _used(store, "clusterIPs"),
        ports_in_use=lambda: _used(store, "nodePort"),
    )
    catalog = Catalog(built_in_resources(allocator, now=moment, rules={_DEFINITION: definition_strategy()}))
    signer = signer or TokenSigner.generate(ISSUER)

    def lookup(plural: str, namespace: str, name: str) -> JSONObject | None:
        entry = store.get(f"/core/{plural}/{namespace}/{name}" if namespace else f"/core/{plural}/{name}")
        return entry.value if entry is not None else None

    audiences = options.audiences or (signer.issuer,)
    authenticator = Authenticator(signer, lookup, clock=clock, tokens=tokens, audiences=audiences)
    authorizer = (AlwaysAllow if options.always_allow else Authorizer)(_Roles(store))

    def new_uid() -> str:
        return str(uuid.UUID(int=source.getrandbits(128), version=4))

    admission = AdmissionChain(store, catalog, authorizer, new_uid, options.disabled_plugins)

    def changed(change: StoreChange) -> None:
        if change.key.startswith(_RBAC):
            authorizer.invalidate()
        elif change.key.startswith(_ADMISSION):
            admission.invalidate()

    store.observe(changed)
    services = Services(
        store=store,
        catalog=catalog,
        admission=admission,
        authenticator=authenticator,
        authorizer=authorizer,
        token_issuer=TokenIssuer(signer, lookup, clock, audiences),
        clock=clock,
        new_uid=new_uid,
        suffix=lambda: "".join(source.choice(_ALPHABET) for _ in range(5)),
        patience=patience,
    )
    conversions = {
        name: ConvertedStore(store, to_storage, from_storage)
        for name, (to_storage, from_storage) in CONVERSIONS.items()
    }
    everywhere = boot_objects(host=host, port=port, client_ca=client_ca, allocator=allocator, now=moment)
    _boot(services, (*everywhere, *objects))
    endpoints = NonResourceEndpoints(catalog, signer)
    server = APIServer(services, conversions, endpoints=endpoints, faults=Faults(), audit=AuditLog())
    return Assembled(server, DefinitionController(store, catalog, services.now), store, signer)


def _used(store: MemoryStore, what: str) -> set[str]:
    """The cluster IPs or node ports that services have."""
    specs = [mapping(entry.value, "spec") for entry in store.range("/core/services/").entries]
    if what == "clusterIPs":
        return {str(address) for spec in specs for address in items(spec, "clusterIPs")}
    return {str(at(port, what)) for spec in specs for port in items(spec, "ports") if at(port, what)}


def _boot(services: Services, objects: Iterable[JSONObject]) -> None:
    now = services.now()
    for key, obj in (*_ready(services.catalog, objects), *_ready_roles()):
        if services.store.get(key) is not None:
            continue
        metadata = {**mapping(obj, "metadata"), "uid": services.new_uid(), "creationTimestamp": now}
        if "managedFields" in metadata:
            metadata["managedFields"] = [{**mapping(entry), "time": now} for entry in items(metadata, "managedFields")]
        services.store.create(key, {**obj, "metadata": metadata})


@cache
def _ready_roles() -> list[tuple[str, JSONObject]]:
    """The first roles and bindings: the same, and shared, in all servers of a process, as they are half of a start."""
    return list(_ready(Catalog(built_in_resources()), bootstrap_objects()))


def _ready(catalog: Catalog, objects: Iterable[JSONObject]) -> Iterator[tuple[str, JSONObject]]:
    """The objects with their managed fields, as they are stored but for uid and times, and under which keys."""
    for given in objects:
        group, _, version = text(given, "apiVersion").rpartition("/")
        resource = catalog.find_kind(group, version, text(given, "kind"))
        if resource is None:
            continue
        obj = {name: value for name, value in given.items() if name not in ("apiVersion", "kind")}
        metadata = mapping(obj, "metadata")
        if managers := first_managers(obj, resource, ""):
            obj["metadata"] = {**metadata, "managedFields": managers}
        yield resource.key(text(metadata, "namespace"), text(metadata, "name")), obj
