from __future__ import annotations

import json
import logging

import pytest

from kubewright.api.codec import decode
from kubewright.api.core.v1 import Pod
from kubewright.client.answer import Warnings, described, failure, readable, retry_after
from kubewright.client.errors import (
    APIError,
    BadRequest,
    ConnectionLost,
    DecodeError,
    Expired,
    Invalid,
    ProtocolError,
    ServiceUnavailable,
    Status,
    StatusDetails,
    TooManyRequests,
)
from kubewright.client.http.response import Headers, Response

REQUEST = "update Pod shop/web-1"


def headers(*fields: tuple[str, str]) -> Headers:
    return Headers([(name.encode(), value.encode()) for name, value in fields])


def test_a_status_is_the_error_it_names() -> None:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Pod "web-1" is invalid',
        "reason": "Invalid",
        "details": {"name": "web-1", "kind": "Pod", "causes": [{"reason": "FieldValueInvalid", "field": "spec.a"}]},
        "code": 422,
    }
    error = failure(422, headers(), json.dumps(body).encode(), REQUEST)

    assert type(error) is Invalid
    assert str(error) == 'update Pod shop/web-1: Pod "web-1" is invalid'
    assert (error.code, error.reason, error.request) == (422, "Invalid", REQUEST)
    assert [cause.field for cause in error.status.causes] == ["spec.a"]


def test_a_status_without_a_code_gets_the_one_of_the_answer() -> None:
    error = failure(410, headers(), b'{"status":"Failure","message":"too old","reason":"Expired"}', REQUEST)

    assert type(error) is Expired
    assert error.code == 410


@pytest.mark.parametrize(
    ("content_type", "body", "quoted"),
    [
        (
            "text/html",
            b"<html>\n <b>Bad\tGateway</b>\n</html>",
            "(text/html) without a Kubernetes status: Bad Gateway",
        ),
        (
            "text/html",
            b"\n<!DOCTYPE html><html><head><style>b { color: red }</style><Title lang=en>502\n Bad</title></head><body>"
            b"<script>let x = 1 < 2;</script><center>nginx</center></body></html>",
            "Kubernetes status: 502 Bad",
        ),
        (
            "text/html",
            b"<html><style>b { color: red }</style><!-- a > b --><script>let x = '<b>'</script><p>Sign\x1b[31m in",
            "Kubernetes status: Sign [31m in",
        ),
        ("text/plain", b"404 page not found\n", "(text/plain) without a Kubernetes status: 404 page not found"),
        (
            "application/json",
            b'{"error": "login"}',
            '(application/json) without a Kubernetes status: {"error": "login"}',
        ),
        ("application/json", b'{"status": "Failure", "mess', 'Kubernetes status: {"status": "Failure", "mess'),
        ("application/json", b"[]", "Kubernetes status: []"),
        ("text/plain", b"\xff\xfe", "Kubernetes status: \ufffd\ufffd"),
        ("text/plain", b"  \n", "Kubernetes status: empty body"),
    ],
)
def test_the_answer_of_a_proxy_is_quoted(content_type: str, body: bytes, quoted: str) -> None:
    error = failure(502, headers(("Content-Type", content_type)), body, REQUEST)

    assert type(error) is ServiceUnavailable
    assert str(error).startswith("update Pod shop/web-1: HTTP 502 (")
    assert str(error).endswith(quoted)
    assert str(error).isprintable()


def test_a_response_without_a_body_and_one_without_a_message_are_different_errors() -> None:
    assert str(failure(400, headers(), b"", "")) == (
        "HTTP 400 (no content type) without a Kubernetes status: empty body"
    )
    assert type(failure(400, headers(), b"", "")) is BadRequest


def test_a_long_answer_is_cut_short() -> None:
    error = failure(500, headers(), b"x" * 5000, REQUEST)

    assert str(error).endswith(": " + "x" * 120 + "…")
    assert len(str(error)) < 250


@pytest.mark.parametrize(
    ("body", "quoted"),
    [
        (b"<html><title>Sign in</title><body>" + b"<p>welcome</p>\n" * 500, True),
        (b'{"kind":"Secret","data":{"password":"czNjcmV0', False),
    ],
)
def test_an_html_page_instead_of_an_object_is_quoted_in_one_line_and_half_an_object_is_not(
    body: bytes, quoted: bool
) -> None:
    response = Response(200, headers(("Content-Type", "text/html")), body)
    with pytest.raises(ProtocolError) as caught, readable(response, REQUEST):
        decode(Pod, body)

    assert str(caught.value).endswith(': "Sign in"') == quoted
    assert "czNjcmV0" not in str(caught.value)
    assert len(str(caught.value)) < 250
    assert str(caught.value).isprintable()


def test_a_success_by_mistake_is_not_taken_for_a_failure() -> None:
    """A 3xx or 5xx whose body says Success is not what an API server sends."""
    error = failure(302, headers(), b'{"kind":"Status","status":"Success","message":"fine"}', REQUEST)

    assert type(error) is APIError
    assert "without a Kubernetes status" in str(error)


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        ("7", None, 7.0),
        (" 7 ", None, 7.0),
        ("0", None, 0.0),
        (None, 3, 3.0),
        ("7", 3, 7.0),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 3, 3.0),
        ("-1", None, None),
        ("1.5", None, None),
        ("²", None, None),
        (None, 0, None),
        (None, None, None),
    ],
)
def test_retry_after_is_read_from_the_header_or_else_from_the_details(
    header: str | None, details: int | None, seconds: float | None
) -> None:
    fields = headers() if header is None else headers(("retry-after", header))
    status = None if details is None else Status(details=StatusDetails(retry_after_seconds=details))

    assert retry_after(fields, status) == seconds


def test_a_failure_carries_what_the_server_asks_to_wait() -> None:
    body = b'{"status":"Failure","reason":"TooManyRequests","message":"later","details":{"retryAfterSeconds":10}}'
    error = failure(429, headers(), body, REQUEST)

    assert type(error) is TooManyRequests
    assert error.retry_after == 10.0


def test_each_warning_is_logged_once_with_the_request_that_it_is_about(caplog: pytest.LogCaptureFixture) -> None:
    warnings = Warnings()
    warnings.read(
        headers(("Warning", '299 - "one"'), ("warning", '299 kube "two, with a comma", 299 - "three"')), REQUEST
    )
    warnings.read(headers(("Warning", '299 - "three"'), ("Warning", "no warning at all")), REQUEST)

    assert caplog.messages == [f"{REQUEST}: {text}" for text in ("one", "two, with a comma", "three")]


def test_a_warning_can_be_handled_instead_of_logged(caplog: pytest.LogCaptureFixture) -> None:
    reported: list[str] = []
    warnings = Warnings(reported.append)
    warnings.read(headers(("Warning", '299 - "one"'), ("Warning", '299 - "one"')), REQUEST)

    assert reported == ["one"]
    assert caplog.messages == []


def test_a_server_that_never_warns_the_same_way_twice_does_not_fill_the_memory_or_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "kubewright.client")
    warnings = Warnings()
    for number in range(1500):
        warnings.read(headers(("Warning", f'299 - "{number}"')), REQUEST)

    assert len(caplog.messages) == 1000


def test_an_error_of_the_connection_gets_the_request_description() -> None:
    error = described(ConnectionLost("GET example.com: gone"), REQUEST)

    assert type(error) is ConnectionLost
    assert str(error) == "update Pod shop/web-1: GET example.com: gone"


def test_a_login_page_instead_of_an_object_is_a_protocol_error() -> None:
    response = Response(200, headers(("Content-Type", "text/html")), b"<html>")
    with (
        pytest.raises(
            ProtocolError, match=r"^get Pod shop/web-1: the server answered 200 \(text/html\) with something"
        ),
        readable(response, "get Pod shop/web-1"),
    ):
        decode(Pod, response.body)


def test_an_object_that_does_not_fit_its_type_is_named() -> None:
    body = b'{"kind":"Pod","metadata":{"name":"web-1","namespace":"shop"},"spec":{"containers":7}}'
    with (
        pytest.raises(DecodeError, match=r'^list Pod in shop: Pod "shop/web-1": .* - at `\$\.spec\.containers`'),
        readable(Response(200, headers(), body), "list Pod in shop"),
    ):
        decode(Pod, body)
