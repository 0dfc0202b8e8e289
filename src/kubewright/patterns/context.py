"""`Context`: what the steps of one run of a pipeline share.

    class UserContext(Context[User]):
        token = ""                                    # set by one step, read by those after it

    await pipeline.run(UserContext(user, client, events))

A derived class adds attributes; it needs no `__init__`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from kubewright.api import Object
from kubewright.client import Client
from kubewright.manager import Recorder
from kubewright.patterns.children import ensure

T = TypeVar("T", bound=Object)
C = TypeVar("C", bound=Object)


class Context(Generic[T]):
    """The object that is reconciled, and what its steps need. Derive from it to add attributes of your own."""

    def __init__(self, object: T, client: Client, events: Recorder) -> None:
        self.object = object
        self.client = client
        self.events = events

    async def ensure(self, wanted: C) -> C:
        """`ensure` of a child that the object owns."""
        return (await ensure(self.client, wanted, owner=self.object)).object
