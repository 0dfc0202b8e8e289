"""`Client`: typed reading and writing of any kind on any Kubernetes.

    async with Client() as client:
        pod = await client.get(Pod, "web-1", namespace="shop")
        pod.metadata.labels["tier"] = "front"
        await client.update(pod)

`get` raises `NotFound`, `find` returns None. Writes return the resulting object. Single objects are read
from the client's own namespace unless one is given; lists and watches span all namespaces unless one is given. An
object that names no namespace is written to the client's own, as with kubectl; one that has an owner must name it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kubewright.api.errors import explain_misuse, explained, refusing
from kubewright.client.arguments import check_namespace
from kubewright.client.config.config import Config
from kubewright.client.http.transport import Transport
from kubewright.client.mapping import Mapper
from kubewright.client.operations import Operations, WriteOptions
from kubewright.client.paths import FieldValidation
from kubewright.client.reader import Reader
from kubewright.client.request_observer import RequestObserver
from kubewright.client.session import Session
from kubewright.client.skipped import Skipped
from kubewright.client.subresources import Subresources
from kubewright.client.token_bucket import TokenBucket
from kubewright.client.writer import Writer

FIELD_MANAGER = "kubewright"


class Client(Reader, Writer, Subresources):
    """A connection to one Kubernetes, as one user. Close it, or use it in `async with`."""

    _owned: Session | None = None  # views own no connections

    @explained
    def __init__(
        self,
        config: Config | None = None,
        *,
        transport: Transport | None = None,
        user_agent: str | None = None,
        field_manager: str = FIELD_MANAGER,
        field_validation: FieldValidation | None = None,
        dry_run: bool = False,
        rate_limit: TokenBucket | None = None,
        timeout: float | None = 30.0,
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        """Connect as `config` says; by default as kubectl would, or as the pod's service account in a cluster.

        `field_manager`, `field_validation` and `dry_run` hold for every write that does not say otherwise.
        `on_warning` is called once with each warning of the server, which is logged otherwise.
        """
        if isinstance(config, str | PathLike):
            raise TypeError(f'Client expects a Config: use Client(Config.load(kubeconfig="{config}"))')
        config = config or Config.load()
        session = Session(
            config,
            transport=transport,
            user_agent=user_agent,
            rate_limit=rate_limit,
            timeout=timeout,
            on_warning=on_warning,
        )
        self._owned = session
        defaults = WriteOptions(dry_run, field_manager, field_validation)
        self._operations = Operations(
            session=session, mapper=Mapper(session), namespace=config.namespace, defaults=defaults
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        explain_misuse(error)
        await self.aclose()

    if not TYPE_CHECKING:
        __enter__ = __exit__ = __await__ = refusing("a client is asynchronous: write async with Client() as client")

    async def aclose(self) -> None:
        """Close all connections, open watches included. Closing a view does nothing: it owns no connections."""
        if self._owned is not None:
            await self._owned.aclose()

    def drop_writes(self) -> None:
        """Reset the connections of writes under way: they end with `ConnectionLost`, and what the server has not
        received never arrives.
        """
        self._operations.session.drop_writes()

    @property
    def answers(self) -> Mapping[tuple[str, str, str], int]:
        """The number of responses so far, by code, method and host; the code of a broken connection is `<error>`."""
        return self._operations.session.answers

    def observe_requests(self, observer: RequestObserver) -> Callable[[], None]:
        """Call `observer` after each attempt at a request, with its method, host, path, code and duration.

        Views of this client, and clients made by `separate`, are observed, too. Returns an unsubscribe function.
        """
        return self._operations.session.observe(observer)

    @property
    def skipped(self) -> Skipped:
        """The objects that lists leave out because they cannot be decoded."""
        return self._operations.skipped

    @property
    def config(self) -> Config:
        """The server and identity of this client; `client.config.to_kubeconfig()` is for kubectl."""
        return self._operations.session.config

    @property
    def field_manager(self) -> str:
        """The name under which writes own fields unless another one is given."""
        return self._operations.defaults.field_manager or ""

    @property
    def namespace(self) -> str:
        """The default namespace of single objects."""
        return self._operations.namespace

    def in_namespace(self, namespace: str) -> Client:
        """A view of this client that stays in one namespace, lists and watches too. It shares the connections."""
        check_namespace(namespace, "in_namespace: namespace")
        view = object.__new__(type(self))
        view._operations = self._operations.scoped(namespace)
        return view

    def separate(self) -> Client:
        """A client of the same server, user and defaults with connections of its own and no rate limit. Close it, too.

        For requests that must not wait behind the rest of a program. A `transport` that was given to the client is
        shared.
        """
        operations = self._operations
        client = object.__new__(Client)
        client._owned = session = operations.session.separate()
        client._operations = Operations(
            session=session,
            mapper=Mapper(session),
            namespace=operations.namespace,
            defaults=operations.defaults,
            scope=operations.scope,
        )
        return client
