"""`Cluster`: the clients and cache of one Kubernetes cluster. A manager has one, and may watch more."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kubewright.api.resources import Object
from kubewright.cache import Cache, CachedClient, CacheOptions
from kubewright.client import Client


class Cluster:
    """A client, a cache on top of it, and a client that reads from that cache."""

    def __init__(
        self,
        client: Client,
        *,
        namespaces: Collection[str] = (),
        cache: Mapping[type[Object], CacheOptions] | None = None,
        strict_cache: bool = False,
        stream: bool = True,
    ) -> None:
        """`namespaces` confines watches that name none; `cache` has the options of single kinds, as `Cache` takes them.

        With `strict_cache` reads that no watch can answer are refused. The client is not closed: its maker does
        that.
        """
        self.cache = Cache(client, namespaces=namespaces, options=cache, strict=strict_cache, stream=stream)
        """The watches, and the objects they have brought."""
        self.client = CachedClient(client, self.cache)
        """Reads what is watched from the cache, and everything else from the server."""
        self.live = self.client.uncached()
        """Reads from the server, never from the cache. What it writes is seen by `client` at once."""
