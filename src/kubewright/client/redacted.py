"""`Redacted`, the base of structures that hold secrets: only the fields that are named are shown."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class Redacted(Struct, frozen=True):
    """Shows only the fields in `__shown__`, to `repr` and to pretty printers that ask a structure for its fields."""

    __shown__: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    # Struct has this, too, for the package rich, with all fields.
    def __rich_repr__(self) -> list[tuple[str, object]]:
        return [(name, getattr(self, name)) for name in self.__shown__]
