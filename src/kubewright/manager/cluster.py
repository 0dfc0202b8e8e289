"""`Cluster`: one Kubernetes, as a program sees it. A manager has one, and may have more to watch."""

from __future__ import annotations

from collections.abc import Collection

from kubewright.cache import Cache, CachedClient
from kubewright.client import Client


class Cluster:
    """A client, a cache on top of it, and a client that reads from that cache."""

    def __init__(self, client: Client, *, namespaces: Collection[str] = (), stream: bool = True) -> None:
        """`namespaces` confines watches that name none. The client is not closed: whoever made it does that."""
        self.live = client
        """Reads from the server, never from the cache."""
        self.cache = Cache(client, namespaces=namespaces, stream=stream)
        """The watches, and the objects they have brought."""
        self.client = CachedClient(client, self.cache)
        """Reads what is watched from the cache, and everything else from the server."""
