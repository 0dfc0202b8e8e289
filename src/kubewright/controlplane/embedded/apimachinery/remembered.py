"""Results of functions of a text that clients send, remembered in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

_MAX_LENGTH: Final = 1024


def remembered(count: int) -> Callable[[F], F]:
    """As `lru_cache`, except that nothing is remembered for a long text: a body has room for megabytes of it."""

    def decorate(function: F) -> F:
        known = lru_cache(count)(function)

        @wraps(function)
        def call(text: str, *arguments: Hashable, **options: Hashable) -> object:
            if len(text) > _MAX_LENGTH:
                return function(text, *arguments, **options)
            return known(text, *arguments, **options)

        return cast(F, call)

    return decorate
