"""Whether a watch has brought all that was written up to a moment: it may be behind by any time.

A new leader needs that. Until its cache shows the last writes of the leader before, deletions above all, it would act
on objects that are gone, and create again what that one has created.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import NamedTuple

from kubewright.api.dynamic import metadata_only
from kubewright.api.errors import KubernetesError
from kubewright.api.kinds import ObjectKey
from kubewright.api.resources import Object
from kubewright.cache.entry import parse_header, revision_of
from kubewright.cache.informer import Informer
from kubewright.cache.reflector import revision_number
from kubewright.client import Client
from kubewright.client.backoff import Backoff
from kubewright.client.errors import Expired

_CHECK = Backoff(0.001, 0.1)
_RETRY = Backoff(0.1, 10.0, jitter=0.5)
_PATIENCE = 30.0

_log = logging.getLogger(__name__)


async def caught_up(client: Client, kind: type[Object], informer: Informer, revision: int) -> None:
    """Return when the informer shows all that had been written to its objects when this was called.

    Nothing is sent if it shows `revision` already, which is of that moment or just before. Otherwise the metadata of
    the objects is listed once, by a consistent read: a server reports its revision on the watch of a kind without
    changes only once a minute. What differs is waited for. A server that cannot answer that is logged.
    """
    failures = 0
    while informer.synced.is_set() and informer.revision < revision:
        try:
            there = await _there(client, kind, informer, revision)
            async with asyncio.timeout(_PATIENCE):
                checks = 0
                while informer.revision < revision and there.is_ahead_of(informer):
                    checks += 1
                    await asyncio.sleep(_CHECK.delay(checks))
        except TimeoutError:
            _log.warning("the watch of %s is behind by more than %g s", informer.kind_name, _PATIENCE)
        except KubernetesError as error:
            failures += 1
            _log.warning("whether the watch of %s is behind is not known: %s", informer.kind_name, error)
            if not (error.is_temporary or isinstance(error, Expired)):
                return  # such as a server that cannot list metadata: a leader that never begins would be worse
            await asyncio.sleep(_RETRY.delay(failures))
        else:
            informer.progress(there.revision)
            return


class _There(NamedTuple):
    """What a server has at a revision, as far as it concerns an informer."""

    revision: int
    newest: int
    """The revision of the last write to an object that exists."""
    gone: dict[ObjectKey, str]
    """The uids of objects that the informer had and that do not exist."""

    def is_ahead_of(self, informer: Informer) -> bool:
        # A watch brings changes in order, so that with the newest all others are there, besides deletions.
        return informer.synced.is_set() and (
            informer.revision < self.newest or any(informer.uid(key) == uid for key, uid in self.gone.items())
        )


async def _there(client: Client, kind: type[Object], informer: Informer, enough: int) -> _There:
    """What the server has; nothing more is read once the informer shows the revision `enough`."""
    scope = informer.scope
    listing = client.raw_pages(
        metadata_only(kind), namespace=scope.namespace or None, labels=scope.labels or None, fields=scope.fields or None
    )
    found: set[ObjectKey] = set()
    revision = newest = 0
    async with aclosing(listing) as pages:
        async for metadata, items in pages:
            revision = revision_number(metadata.resource_version)
            for item in items:
                header = parse_header(bytes(item))
                found.add(header.key)
                newest = max(newest, revision_of(header))
            if informer.revision >= enough:
                return _There(enough, 0, {})
    gone = {
        entry.key: entry.header.uid
        for entry in informer.select(own_writes=False)
        if entry.key not in found and entry.revision <= revision
    }
    return _There(revision, newest, gone)
