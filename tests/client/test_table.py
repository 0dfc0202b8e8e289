from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kubewright.api.core.v1 import Pod
from kubewright.client.client import Client
from kubewright.client.errors import NotAcceptable, ProtocolError
from kubewright.client.table import Table, TableColumn, TableRow

if TYPE_CHECKING:
    from tests.client.conftest import ScriptedServer


async def test_a_table_has_the_columns_and_cells_of_the_server(client: Client, server: ScriptedServer) -> None:
    server.answers(
        {
            "kind": "Table",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": "7"},
            "columnDefinitions": [
                {"name": "Name", "type": "string", "format": "name", "description": "...", "priority": 0},
                {"name": "Restarts", "type": "integer", "format": "", "description": "...", "priority": 1},
            ],
            "rows": [
                {"cells": ["web-1", 3], "object": {"kind": "PartialObjectMetadata", "metadata": {"name": "web-1"}}},
                {"cells": ["web-2", None], "object": None},
            ],
        }
    )
    table = await client.table(Pod, namespace="shop", labels={"app": "web"}, fields={"spec.nodeName": "n"})

    assert table.column("Name") == ["web-1", "web-2"]
    assert table.column("Restarts") == [3, None]
    assert [column.priority for column in table.column_definitions] == [0, 1]
    assert table.rows[0].object is not None
    assert table.rows[0].object.metadata.name == "web-1"
    (sent,) = server.sent
    assert sent.path == "/api/v1/namespaces/shop/pods"
    assert sent.query == {"labelSelector": "app=web", "fieldSelector": "spec.nodeName=n"}
    assert sent.header("Accept") == ["application/json;as=Table;g=meta.k8s.io;v=v1"]


async def test_a_table_without_rows_is_empty(client: Client, server: ScriptedServer) -> None:
    server.answers({"kind": "Table", "columnDefinitions": [{"name": "Name"}], "rows": None})

    assert (await client.table(Pod)).column("Name") == []


def test_an_unknown_column_is_an_error_that_lists_the_others() -> None:
    table = Table(column_definitions=[TableColumn(name="Name"), TableColumn(name="Age")], rows=[TableRow(cells=["a"])])
    with pytest.raises(KeyError, match=r'no column \\?"Status\\?" \(columns: Name, Age\)'):
        table.column("Status")


async def test_a_server_without_tables_says_so(client: Client, server: ScriptedServer) -> None:
    server.refuses(406, "NotAcceptable", "only application/json")
    with pytest.raises(NotAcceptable, match=r"^list Pod in all namespaces: only application/json$"):
        await client.table(Pod)


async def test_what_is_no_table_is_a_protocol_error(client: Client, server: ScriptedServer) -> None:
    server.answers(b"<html>")
    with pytest.raises(ProtocolError, match=r"^list Pod in all namespaces: the server answered 200"):
        await client.table(Pod)
