"""What is compared with the real server's answers is in tests/conformance/test_endpoints.py."""

from __future__ import annotations

import asyncio
import gzip

from kubewright.controlplane.embedded.endpoints.request import parse_query
from kubewright.controlplane.embedded.http.exchange import HTTPRequest, HTTPResponse, json_response
from kubewright.controlplane.embedded.http.presentation import presented


def show(response: HTTPResponse, query: str = "", **headers: str) -> HTTPResponse:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    shown = presented(response, HTTPRequest("GET", "/x", query, fields), parse_query(query))
    asyncio.run(shown.complete())
    return shown


def test_json_is_compact_unless_indentation_is_requested() -> None:
    content = {"a": [], "b": {}, "c": [1]}
    assert show(json_response(content)).body == b'{"a":[],"b":{},"c":[1]}\n'
    expected = b'{\n  "a": [],\n  "b": {},\n  "c": [\n    1\n  ]\n}'
    assert show(json_response(content), "pretty=true").body == expected
    assert show(json_response(content), user_agent="curl/8.1").body == expected
    assert show(json_response(content), accept="application/json;pretty=1").body == expected


def test_a_body_that_is_no_json_is_left_alone() -> None:
    plain = HTTPResponse(200, b"{ok}", "text/plain; charset=utf-8")
    assert show(plain, "pretty=true").body == b"{ok}"


def test_a_failure_has_no_form_but_its_own() -> None:
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    assert show(json_response({"a": 1}, 404), accept=f"{table},application/json").body == b'{"a":1}\n'
    # No encoding was negotiated for errors.
    assert show(json_response({"a": 1}, 404), accept=table).body == b'{\n  "a": 1\n}'


def test_only_large_answers_are_compressed() -> None:
    small, large = {"a": "x" * 100_000}, {"a": "x" * 200_000}
    assert show(json_response(small), accept_encoding="gzip").headers == []
    assert show(json_response(large), accept_encoding="br").headers == []
    found = show(json_response(large), accept_encoding="br, gzip")
    assert found.headers == [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
    assert gzip.decompress(found.body) == json_response(large).body
