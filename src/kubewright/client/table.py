"""Objects as `kubectl get` shows them: the server computes the columns, also for custom resources."""

from __future__ import annotations

from kubewright.api.dynamic import PartialObject
from kubewright.api.markers import JSONValue
from kubewright.api.meta import ListMeta
from kubewright.api.model import BuiltIn


class TableColumn(BuiltIn):
    """A column. Those with a priority above 0 are shown by `-o wide` only."""

    name: str
    type: str = ""
    format: str = ""
    description: str = ""
    priority: int = 0


class TableRow(BuiltIn):
    """One object: a cell per column, and its metadata."""

    cells: list[JSONValue]
    object: PartialObject | None = None


class Table(BuiltIn):
    """Rows under columns."""

    metadata: ListMeta | None = None
    column_definitions: list[TableColumn] = []
    rows: list[TableRow] = []

    def column(self, name: str) -> list[JSONValue]:
        """The cells of one column, by its name."""
        names = [column.name for column in self.column_definitions]
        if name not in names:
            raise KeyError(f'no column "{name}" (columns: {", ".join(names)})')
        index = names.index(name)
        return [row.cells[index] for row in self.rows]
