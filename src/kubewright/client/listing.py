"""The result of `client.list`: pages, fetched as they are needed.

async for pod in client.list(Pod): ...          one page in memory at a time
pods = await client.list(Pod)                   all of them, as a list
async for page in client.list(Pod).pages(): ... with the revision each page shows
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct

from kubewright.api.meta import ListMeta
from kubewright.api.resources import Object
from kubewright.client.errors import Expired

T = TypeVar("T", bound=Object)


class Page(Struct, Generic[T], frozen=True):
    """One page of a list. All pages of one listing show the same revision."""

    metadata: ListMeta
    items: list[T]


class PagedList(Generic[T]):
    """A list that has not been fetched yet. Iterating or awaiting it asks the server each time."""

    def __init__(self, fetch: Callable[[str, int], Awaitable[Page[T]]], page_size: int) -> None:
        self.fetch = fetch
        """One page: after a continue token (empty for the first), of at most so many objects (0 for all)."""
        self._page_size = page_size

    async def pages(self) -> AsyncGenerator[Page[T], None]:
        """The pages in order. Raises `Expired` when the server has forgotten the revision between two pages."""
        page = await self.fetch("", self._page_size)
        yield page
        while page.metadata.continue_:
            page = await self.fetch(page.metadata.continue_, self._page_size)
            yield page

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item

    if not TYPE_CHECKING:  # type checkers find these mistakes by themselves

        def _not_fetched(self, *_):
            raise TypeError(
                "this list has not been fetched yet: write `await client.list(...)` for all objects, or "
                "`async for ... in client.list(...)` for one after the other"
            )

        __iter__ = __len__ = __getitem__ = __contains__ = _not_fetched

        @property
        def items(self):
            """Raises an error with the fix: other clients have the objects there."""
            self._not_fetched()

    def __await__(self) -> Generator[object, None, list[T]]:
        return self._all().__await__()

    async def _all(self) -> list[T]:
        try:
            return [item async for item in self]
        except Expired:
            # Nothing has been returned yet, so the list can be read again, whole, as one consistent response.
            return (await self.fetch("", 0)).items


async def page_of_several(listings: Mapping[str, PagedList[T]], continue_: str, limit: int) -> Page[T]:
    """One page of the lists of several namespaces, one after the other in their order by name.

    Each of them shows a revision of its own. A continue token has the name of its namespace before the server's token.
    """
    present, _, token = continue_.partition(":")
    items: list[T] = []
    revision = ""
    for namespace in sorted(listings):
        if namespace < present:
            continue
        page = await listings[namespace].fetch(token if namespace == present else "", limit)
        items += page.items
        revision = revision or page.metadata.resource_version
        if page.metadata.continue_:
            return Page(ListMeta(resource_version=revision, continue_=f"{namespace}:{page.metadata.continue_}"), items)
        following = min((each for each in listings if each > namespace), default="")
        if limit and following:
            return Page(ListMeta(resource_version=revision, continue_=f"{following}:"), items)
    return Page(ListMeta(resource_version=revision), items)
