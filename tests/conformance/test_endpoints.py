"""Everything that is no resource, and how any answer is written down: on every control plane the same."""

from __future__ import annotations

import asyncio
import gzip
import re
import ssl
from base64 import urlsafe_b64decode

import msgspec
import pytest
import yaml
from tests.conformance.asking import Fetch, decoded

from kubewright.api.core.v1 import ConfigMap
from kubewright.api.meta import ObjectMeta
from kubewright.client import Client
from kubewright.client.http.transport import HTTPTransport
from kubewright.controlplane import ControlPlane
from kubewright.controlplane.embedded.apimachinery.document import items, mapping, text
from kubewright.controlplane.embedded.endpoints.health import CHECKS

# Of the real server alone: what it reports of its own internals.
INTERNALS = {"/flagz", "/metrics/slis", "/openapi/v3/", "/statusz"}
BUILD = {"gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform"}


async def test_the_version_differs_only_in_how_it_was_built(fetch: Fetch) -> None:
    response = await fetch("/version")
    found = decoded(response)
    assert {name: value for name, value in found.items() if name not in BUILD} == {
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.4",
    }
    assert found.keys() >= BUILD
    assert response.body == msgspec.json.format(msgspec.json.encode(found), indent=2)


@pytest.mark.parametrize("name", sorted(CHECKS))
async def test_health_is_reported_check_by_check(fetch: Fetch, name: str) -> None:
    brief, verbose = await fetch(f"/{name}"), await fetch(f"/{name}?verbose")
    assert (brief.status, brief.body) == (200, b"ok")
    lines = [f"[+]{check} ok" for check in CHECKS[name]]
    assert verbose.body.decode().splitlines() == [*lines, f"{name} check passed"]
    for check in CHECKS[name]:
        assert (await fetch(f"/{name}/{check}")).body == b"ok", check
    assert (await fetch(f"/{name}/nothing")).status == 404


async def test_checks_can_be_left_out(fetch: Fetch) -> None:
    refusal = (await fetch("/livez?verbose&exclude=etcd&exclude=two&exclude=one")).body.decode().splitlines()
    assert "[+]etcd excluded: ok" in refusal
    assert refusal[-2:] == [
        'warn: some health checks cannot be excluded: no matches for "one","two"',
        "livez check passed",
    ]


async def test_anyone_may_read_health_and_version_and_for_nothing_else(control_plane: ControlPlane) -> None:
    trusting = ssl.create_default_context(cadata=control_plane.ca_certificate)
    transport = HTTPTransport(control_plane.url, tls=trusting)
    statuses = {
        path: (await transport.request("GET", path, timeout=30)).status
        for path in ("/healthz", "/livez", "/readyz", "/version", "/api", "/api/v1/nodes", "/")
    }
    await transport.aclose()
    assert statuses == {
        "/healthz": 200,
        "/livez": 200,
        "/readyz": 200,
        "/version": 200,
        "/api": 403,
        "/api/v1/nodes": 403,
        "/": 403,
    }


@pytest.mark.parametrize("path", ["/", "/index.html"])
async def test_the_index_lists_every_path(fetch: Fetch, path: str) -> None:
    response = await fetch(path)
    listed = [str(found) for found in items(decoded(response), "paths") if found not in INTERNALS]
    # Other tests leave kinds of their own.
    built_in = [found for found in listed if not found.endswith((".com", ".com/v1", ".dev", ".dev/v1"))]
    assert built_in == sorted(built_in)
    assert {"/.well-known/openid-configuration", "/api/v1", "/apis/", "/apis/apps/v1", "/version"} <= set(built_in)
    of_health = [f"/{name}/{check}" for name, checks in CHECKS.items() for check in checks]
    assert set(of_health) <= set(built_in)
    groups = decoded(await fetch("/apis"))
    assert {f"/apis/{text(group, 'name')}" for group in items(groups, "groups")} <= set(listed)
    assert {found for found in built_in if not found.startswith(("/apis/", *(f"/{name}/" for name in CHECKS)))} == {
        "/.well-known/openid-configuration",
        "/api",
        "/api/v1",
        "/apis",
        "/healthz",
        "/livez",
        "/metrics",
        "/openapi/v2",
        "/openapi/v3",
        "/openid/v1/jwks",
        "/readyz",
        "/version",
    }


async def test_tokens_can_be_checked_by_the_published_keys(fetch: Fetch, control_plane: ControlPlane) -> None:
    configuration = await fetch("/.well-known/openid-configuration")
    keys = await fetch("/openid/v1/jwks")
    assert configuration.headers.get("Cache-Control") == keys.headers.get("Cache-Control") == "public, max-age=3600"
    assert keys.headers.get("Content-Type") == "application/jwk-set+json"
    path = "/api/v1/namespaces/kube-system/serviceaccounts/default/token"
    body = b'{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}'
    token = text(decoded(await fetch(path, "POST", [("Content-Type", "application/json")], body)), "status", "token")
    header, claims = (
        msgspec.json.decode(urlsafe_b64decode(part + "=" * (-len(part) % 4)), type=dict[str, object])
        for part in token.split(".")[:2]
    )
    (key,) = items(decoded(keys), "keys")
    assert {"kid": text(key, "kid"), "alg": text(key, "alg")} == header
    assert decoded(configuration) == {
        "issuer": claims["iss"],
        "jwks_uri": f"{control_plane.url}/openid/v1/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [header["alg"]],
    }


@pytest.mark.parametrize(
    ("timeout", "complaint"),
    [
        ("bad", 'time: invalid duration "bad"'),
        ("5", 'time: missing unit in duration "5"'),
        ("5x", 'time: unknown unit "x" in duration "5x"'),
        ("1m.", 'time: invalid duration "1m."'),
        ("-", 'time: invalid duration "-"'),
        (".s", 'time: invalid duration ".s"'),
        ("99999999h", 'time: invalid duration "99999999h"'),
    ],
)
async def test_a_timeout_that_is_no_duration_is_refused(fetch: Fetch, timeout: str, complaint: str) -> None:
    for path in ("/api/v1/nodes", "/version", "/apis"):
        response = await fetch(f"{path}?timeout={timeout}")
        assert response.status == 400
        assert decoded(response)["message"] == f"invalid timeout specified in the request URL - {complaint}"


@pytest.mark.parametrize("timeout", ["", "0", "0s", "90s", "-1s", "1h2m3.5s", "%2B.5m"])
async def test_other_timeouts_are_not(fetch: Fetch, timeout: str) -> None:
    assert (await fetch(f"/api/v1/nodes?timeout={timeout}")).status == 200


async def test_a_read_waits_no_longer_than_its_timeout(fetch: Fetch) -> None:
    """The revision never comes, and a read would wait for it longer than the test does."""
    response = await fetch("/api/v1/nodes?resourceVersion=9999999999&timeout=100ms")
    assert response.status == 504
    assert decoded(response)["message"] == "Timeout: request did not complete within the allotted timeout"


@pytest.mark.parametrize(
    ("query", "agent", "is_indented"),
    [
        ("", "", False),
        ("?pretty=true", "", True),
        ("?pretty=1", "", True),
        ("?pretty", "", False),
        ("?pretty=yes", "curl/8", False),
        ("", "curl/8", True),
        ("", "Wget/1.2", True),
        ("", "Mozilla/5.0 (X11)", True),
        ("", "Mozilla/4.0", False),
        ("?pretty=false", "curl/8", False),
    ],
)
async def test_people_get_indented_answers(fetch: Fetch, query: str, agent: str, is_indented: bool) -> None:
    for path in (
        "/api/v1/namespaces/default",
        "/api/v1/nodes",
        "/api/v1/namespaces/nope",
        "/apis/batch",
        "/apis/apps/v9",
    ):
        response = await fetch(f"{path}{query}", headers=[("User-Agent", agent)])
        compact = msgspec.json.format(response.body.rstrip(b"\n"), indent=0)
        expected = msgspec.json.format(compact, indent=2) if is_indented else response.body.rstrip(b"\n") + b"\n"
        assert response.body == expected, path
        assert (b"\n  " in response.body) == is_indented, path


async def test_failures_come_in_the_form_that_was_requested(fetch: Fetch) -> None:
    response = await fetch("/api/v1/namespaces/nope", headers=[("Accept", "application/yaml")])
    assert response.headers.get("Content-Type") == "application/yaml"
    assert yaml.safe_load(response.body)["message"] == 'namespaces "nope" not found'


@pytest.mark.parametrize(
    ("path", "accept", "message"),
    [
        (
            "/api/v1/nodes",
            "text/html",
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf, application/json;stream=watch, "
            "application/vnd.kubernetes.protobuf;stream=watch",
        ),
        (
            "/apis/apps/v1",
            "text/html",
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
        ),
        (
            "/api/v1/namespaces/default",
            "text/html",
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
        ),
        ("/version", "text/html", "406: Not Acceptable\n\nAvailable representations: application/json"),
        (
            "/apis",
            "text/html",
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
        ),
        (
            "/api/v1/nodes",
            "application/json;as=Nothing;v=v1;g=meta.k8s.io",
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
        ),
        (
            "/api/v1/nodes?watch=1",
            "application/json;stream=nothing",
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf",
        ),
        (
            "/api/v1/nodes",
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
            "you requested PartialObjectMetadata, but the requested object is a list (*core.NodeList)",
        ),
        (
            "/api/v1/namespaces/default",
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            "you requested PartialObjectMetadataList, but the requested object is not a list (*core.Namespace)",
        ),
    ],
)
async def test_a_form_that_cannot_be_served_is_not_acceptable(
    fetch: Fetch, path: str, accept: str, message: str
) -> None:
    response = await fetch(path, headers=[("Accept", accept)])
    assert (response.status, decoded(response)["message"]) == (406, message)


async def test_events_are_not_written_as_yaml(fetch: Fetch) -> None:
    response = await fetch("/api/v1/nodes?watch=1", headers=[("Accept", "application/yaml")])
    assert response.status == 406
    assert yaml.safe_load(response.body)["message"] == (
        "only the following media types are accepted: application/json;stream=watch, "
        "application/vnd.kubernetes.protobuf;stream=watch"
    )


async def test_the_first_acceptable_form_counts(fetch: Fetch) -> None:
    accept = "text/html, application/json;q=0.5, application/yaml;q=0.9, application/json;as=Table;v=v9;g=meta.k8s.io"
    assert (await fetch("/api/v1/nodes", headers=[("Accept", accept)])).headers.get(
        "Content-Type"
    ) == "application/yaml"


async def test_large_responses_are_compressed_for_clients_that_accept_it(fetch: Fetch, client: Client) -> None:
    for name in "ab":
        await client.create(ConfigMap(metadata=ObjectMeta(name=name), data={"x": name * 100_000}))
    path = f"/api/v1/namespaces/{client.namespace}/configmaps"
    accepts = [("Accept-Encoding", "deflate, gzip")]
    plain, small, single = (
        await fetch(path),
        await fetch(path, headers=accepts),
        await fetch(f"{path}/a", headers=accepts),
    )
    assert plain.headers.get("Content-Encoding") is None
    assert (small.headers.get("Content-Encoding"), small.headers.get("Vary")) == ("gzip", "Accept-Encoding")
    assert len(small.body) < 10_000
    names = [
        text(found, "metadata", "name") for found in items(msgspec.json.decode(gzip.decompress(small.body)), "items")
    ]
    assert {"a", "b"} <= set(names)
    # What is smaller than that is not worth it.
    assert single.headers.get("Content-Encoding") is None
    assert mapping(decoded(single), "data")


NO_METHOD = "the server does not allow this method on the requested resource"
NO_RESOURCE = "the server could not find the requested resource"


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("POST", "/api/v1/nodes/x", 405, NO_METHOD),
        ("PUT", "/api/v1/nodes", 405, NO_METHOD),
        ("PATCH", "/api/v1/nodes", 405, NO_METHOD),
        ("TRACE", "/api/v1/nodes", 405, NO_METHOD),
        ("POST", "/api/v1/pods", 405, NO_METHOD),
        ("DELETE", "/api/v1/pods", 405, NO_METHOD),
        ("DELETE", "/api/v1/componentstatuses", 405, NO_METHOD),
        ("POST", "/api/v1/namespaces/default/pods/x/status", 405, NO_METHOD),
        ("DELETE", "/api/v1/namespaces/default/pods/x/status", 405, NO_METHOD),
        ("GET", "/api/v1/namespaces/default/pods/x/binding", 405, NO_METHOD),
        ("GET", "/api/v1/namespaces/default/pods/x/eviction", 405, NO_METHOD),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405, NO_METHOD),
        ("POST", "/api/v1/watch/services", 405, NO_METHOD),
        ("DELETE", "/version", 405, NO_METHOD),
        ("POST", "/apis/apps/v1", 405, NO_METHOD),
        ("GET", "/api/v1/pods/x", 404, NO_RESOURCE),
        ("GET", "/api/v1/nothing", 404, NO_RESOURCE),
        ("GET", "/api/v1/watch/nothing", 404, NO_RESOURCE),
        ("GET", "/api/v1/namespaces/default/nodes", 404, NO_RESOURCE),
        ("GET", "/api/v1/nodes/x/nothing", 404, NO_RESOURCE),
        (
            "POST",
            "/apis/example.com/v1/namespaces/default/widgets/x/status",
            405,
            "create is not supported on resources ",
        ),
        ("DELETE", "/apis/example.com/v1/namespaces/default/widgets/x/status", 405, "delete is not supported on "),
        ("TRACE", "/apis/example.com/v1/namespaces/default/widgets", 405, " is not supported on resources of kind "),
        ("PUT", "/apis/example.com/v1/namespaces/default/widgets", 400, "name must be provided"),
    ],
)
@pytest.mark.usefixtures("widgets")
async def test_a_path_takes_the_methods_it_has(fetch: Fetch, method: str, path: str, status: int, message: str) -> None:
    response = await fetch(path, method)
    assert response.status == status
    assert str(decoded(response)["message"]).startswith(message)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/apis/nobody.example.org/v1/things"),
        ("GET", "/nothing"),
        ("GET", "/apis/example.com/v1/widgets/x"),
        ("POST", "/apis/example.com/v1/widgets"),
        ("DELETE", "/apis/example.com/v1/widgets"),
    ],
)
@pytest.mark.usefixtures("widgets")
async def test_an_unknown_path_has_no_status(fetch: Fetch, method: str, path: str) -> None:
    response = await fetch(path, method)
    assert (response.status, response.body) == (404, b"404 page not found\n")
    assert response.headers.get("X-Content-Type-Options") == "nosniff"


@pytest.mark.usefixtures("widgets")
async def test_heads_are_sent_of_custom_resources_only(fetch: Fetch) -> None:
    assert (await fetch("/apis/example.com/v1/namespaces/default/widgets", "HEAD")).status == 200
    assert (await fetch("/api/v1/nodes", "HEAD")).status == 405


async def test_metrics_count_the_requests(fetch: Fetch) -> None:
    await fetch("/api/v1/namespaces/default/configmaps")
    response = await fetch("/metrics")
    lines = response.body.decode().splitlines()
    assert response.status == 200
    assert (response.headers.get("Content-Type") or "").startswith("text/plain; version=0.0.4; charset=utf-8")
    assert "# TYPE apiserver_request_total counter" in lines
    counted = [line for line in lines if line.startswith("apiserver_request_total{") and 'verb="LIST"' in line]
    assert any('code="200"' in line and 'resource="configmaps"' in line for line in counted)


async def test_metrics_count_what_is_watched(fetch: Fetch) -> None:
    path = "/api/v1/namespaces/default/services?watch=1&timeoutSeconds=60"
    watch = asyncio.ensure_future(fetch(path))
    watched = re.compile(
        r'apiserver_longrunning_requests\{component="apiserver",group="",resource="services",scope="namespace",'
        r'subresource="",verb="WATCH",version="v1"\} [1-9]'
    )
    async with asyncio.timeout(30):
        while not watched.search(metrics := (await fetch("/metrics")).body.decode()):
            await asyncio.sleep(0.02)
    watch.cancel()
    assert re.search(r"^process_cpu_seconds_total [0-9.]+$", metrics, re.MULTILINE)
