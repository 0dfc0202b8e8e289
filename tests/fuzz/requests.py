"""An endless sequence of requests that no reasonable client sends; the same for the same seed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import NamedTuple, cast
from urllib.parse import quote

import yaml
from tests.fuzz import languages, values

from kubewright.api.markers import JSONObject, JSONValue
from kubewright.controlplane.embedded.builtins.registry import built_in_resources

_SEEDS = Path(__file__).parent.parent / "conformance"
_FILES = ("table_rows.yaml", "table_rows_cluster_wide.yaml", "odd_objects.yaml")
_PATCHES = ("json-patch", "merge-patch", "strategic-merge-patch", "apply-patch")
_ACCEPTS = (
    "application/json",
    "application/yaml",
    "*/*",
    "application/json;as=Table;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    "application/vnd.kubernetes.protobuf",
    "text/html;q=x, ;,",
    "application/json;stream=watch",
)
_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "", "text/plain", "a/b;;=")
_SUBRESOURCES = ("status", "scale", "eviction", "binding", "token", "approval", "finalize", "log", "exec", "proxy", "x")
_REVIEWS = {
    "/apis/authorization.k8s.io/v1/subjectaccessreviews": "SubjectAccessReview",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews": "SelfSubjectRulesReview",
    "/apis/authentication.k8s.io/v1/tokenreviews": "TokenReview",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews": "SelfSubjectReview",
}
_PARAMETERS = (
    "resourceVersion",
    "resourceVersionMatch",
    "limit",
    "continue",
    "timeout",
    "timeoutSeconds",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "pretty",
    "propagationPolicy",
    "gracePeriodSeconds",
    "orphanDependents",
    "includeObject",
    "sendInitialEvents",
    "allowWatchBookmarks",
    "container",
    "tailLines",
    "exclude",
    "verbose",
)


class FuzzRequest(NamedTuple):
    """One request, as it is sent."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes | None


class _Kind(NamedTuple):
    path: str
    namespaced: bool
    seeds: list[JSONObject]


def fuzz_requests(seed: int) -> Iterator[FuzzRequest]:
    """All requests of a seed."""
    return _Generator(Random(seed)).requests()


class _Generator:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._kinds = _kinds()
        self._names = ["a", "b", "default", "kubernetes"]
        self._definitions = 0

    def requests(self) -> Iterator[FuzzRequest]:
        random = self._random
        while True:
            match random.randrange(12):
                case 0 | 1 | 2 | 3:
                    yield self._write()
                case 4 | 5:
                    yield self._patch()
                case 6 | 7:
                    yield self._read()
                case 8:
                    yield self._definition()
                case 9:
                    yield self._custom()
                case 10:
                    yield self._elsewhere()
                case _:
                    yield self._review()

    def _write(self) -> FuzzRequest:
        random = self._random
        kind = random.choice(self._kinds)
        document = values.spoiled(random, random.choice(kind.seeds))
        if random.random() < 0.7:
            _metadata(document)["name"] = random.choice(self._names)
        if random.random() < 0.3:
            target = f"{self._path(kind)}/{random.choice(self._names)}{self._subresource()}"
            return self._request("PUT", target, document)
        if random.random() < 0.1:
            target = f"{self._path(kind)}/{random.choice(self._names)}{self._subresource()}"
            return self._request("POST", target, document)
        return self._request("POST", self._path(kind), document)

    def _patch(self) -> FuzzRequest:
        random = self._random
        kind = random.choice(self._kinds)
        name = random.choice(_PATCHES)
        document: JSONValue = values.spoiled(random, random.choice(kind.seeds))
        if name == "json-patch":
            paths = ("/metadata/labels", "/spec/a~1b/0", "/metadata/labels/-", "", "/spec/" + "9" * 5000, "x")
            document = [
                {
                    "op": random.choice(("add", "remove", "replace", "test", "move", "copy", "x")),
                    "path": random.choice(paths),
                    "from": random.choice(paths),
                    "value": values.value(random),
                }
                for _ in range(random.randrange(4))
            ]
        elif name == "strategic-merge-patch" and isinstance(document, dict):
            document[random.choice(("$patch", "$retainKeys", "$setElementOrder/x"))] = values.value(random, 1)
        kind_of_body = f"application/{name}+{'yaml' if name == 'apply-patch' else 'json'}"
        target = f"{self._path(kind)}/{random.choice(self._names)}{self._subresource()}"
        if name == "apply-patch":
            target += "?fieldManager=m&force=true"
        return self._request("PATCH", target, document, kind_of_body)

    def _read(self) -> FuzzRequest:
        random = self._random
        path = self._path(random.choice(self._kinds))
        if random.random() < 0.3:
            path += f"/{random.choice(self._names)}{self._subresource()}"
        method = random.choice(("GET", "GET", "GET", "DELETE", "HEAD", "OPTIONS"))
        return self._request(method, f"{path}?{self._query()}")

    def _definition(self) -> FuzzRequest:
        random = self._random
        self._definitions = (self._definitions + 1) % 8
        document = languages.definition(random, self._definitions)
        if random.random() < 0.3:
            document = values.spoiled(random, document)
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        if random.random() < 0.4:
            name = f"fuzzes{self._definitions}.fuzz.example.com"
            if random.random() < 0.5:
                return self._request("DELETE", f"{path}/{name}")
            return self._request("PATCH", f"{path}/{name}", document, "application/merge-patch+json")
        return self._request("POST", path, document)

    def _custom(self) -> FuzzRequest:
        random = self._random
        number = random.randrange(8)
        path = f"/apis/fuzz.example.com/v1/namespaces/default/fuzzes{number}"
        document: JSONObject = {
            "apiVersion": "fuzz.example.com/v1",
            "kind": f"Fuzz{number}",
            "metadata": {"name": random.choice(self._names)},
            "spec": values.value(random),
            "a": values.value(random),
        }
        match random.randrange(4):
            case 0:
                return self._request("GET", f"{path}?{self._query()}")
            case 1:
                target = f"{path}/{random.choice(self._names)}{self._subresource()}?fieldManager=m&force=true"
                return self._request("PATCH", target, document, "application/apply-patch+yaml")
            case _:
                return self._request("POST", path, document)

    def _elsewhere(self) -> FuzzRequest:
        random = self._random
        roots = ("api", "apis", "openapi", "version", "healthz", "metrics", "logs", "v1", "apps", "namespaces", "watch")
        steps = [
            random.choice(roots) if random.random() < 0.7 else quote(values.text(random)[:2000], errors="replace")
            for _ in range(random.randrange(6))
        ]
        path = "/" + random.choice(("", "", "/", "%2e%2e/", "../")) + "/".join(steps)
        return self._request(random.choice(("GET", "POST", "DELETE", "PUT")), f"{path}?{self._query()}")

    def _review(self) -> FuzzRequest:
        random = self._random
        path, kind = random.choice(list(_REVIEWS.items()))
        attributes: JSONObject = {"verb": "get", "resource": "pods", "namespace": "default"}
        spec: JSONObject = {"user": "a", "groups": ["b"], "resourceAttributes": attributes, "token": "x.y.z"}
        document: JSONObject = {"apiVersion": path[6:].rpartition("/")[0], "kind": kind, "spec": spec}
        return self._request("POST", path, values.spoiled(random, document))

    def _path(self, kind: _Kind) -> str:
        random = self._random
        if kind.namespaced and random.random() < 0.9:
            head, _, plural = kind.path.rpartition("/")
            return f"{head}/namespaces/default/{plural}"
        return kind.path

    def _subresource(self) -> str:
        return f"/{self._random.choice(_SUBRESOURCES)}" if self._random.random() < 0.25 else ""

    def _query(self) -> str:
        random = self._random
        parts: list[str] = []
        for _ in range(random.randrange(4)):
            if random.random() < 0.4:
                name = random.choice(("labelSelector", "fieldSelector"))
                parts.append(f"{name}={quote(languages.selector(random), errors='replace')}")
            else:
                given = random.choice(("", "0", "1", "true", "All", "5", "Exact")) if random.random() < 0.6 else None
                found = values.text(random) if given is None else given
                parts.append(f"{random.choice(_PARAMETERS)}={quote(found, errors='replace')}")
        return "&".join(parts) + random.choice(("", "", "", "&", ";", "%", "&=&"))

    def _request(
        self, method: str, target: str, document: JSONValue = None, content_type: str | None = None
    ) -> FuzzRequest:
        random = self._random
        headers = [("Accept", random.choice(_ACCEPTS) if random.random() < 0.4 else "application/json")]
        body: bytes | None = None
        if document is not None:
            body = values.encoded(random, document)
            if content_type is None:
                content_type = random.choice(_TYPES) if random.random() < 0.1 else "application/json"
                if content_type == "application/vnd.kubernetes.protobuf":
                    body = b"k8s\0" + random.randbytes(random.randrange(60))
                elif random.random() < 0.05:
                    content_type, body = "application/yaml", _as_yaml(document)
            headers.append(("Content-Type", content_type))
        if random.random() < 0.05:
            name = random.choice(("Impersonate-User", "Impersonate-Group", "Impersonate-Extra-a", "If-None-Match"))
            headers.append((name, _latin(values.text(random))))
        return FuzzRequest(method, target, headers, body)


def _latin(text: str) -> str:
    return "".join(character for character in text if " " <= character <= "~")


def _as_yaml(document: JSONValue) -> bytes:
    try:
        return yaml.safe_dump(document).encode()
    except (RecursionError, UnicodeError):
        return b"a: &a [*a]"


def _metadata(document: JSONObject) -> JSONObject:
    found = document.get("metadata")
    if not isinstance(found, dict):
        found = document["metadata"] = {}
    return found


def _kinds() -> list[_Kind]:
    seeds: dict[tuple[str, str], list[JSONObject]] = {}
    for name in _FILES:
        for found in yaml.load_all((_SEEDS / name).read_text(), yaml.CSafeLoader):
            # Dates are values of their own in YAML, and texts in JSON.
            document = cast(JSONValue, json.loads(json.dumps(found, default=str)))
            if isinstance(document, dict) and isinstance(document.get("kind"), str):
                seeds.setdefault((str(document["apiVersion"]), str(document["kind"])), []).append(document)
    made: list[_Kind] = []
    for resource in built_in_resources():
        gvk = resource.gvk
        minimal: JSONObject = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": "a"}, "spec": {}}
        path = f"/{'apis' if gvk.group else 'api'}/{gvk.api_version}/{resource.plural}"
        made.append(_Kind(path, resource.namespaced, seeds.get((gvk.api_version, gvk.kind)) or [minimal]))
    return made


def is_watch(request: FuzzRequest) -> bool:
    """Whether a request may be answered by a stream."""
    return "watch" in request.target


def described(request: FuzzRequest) -> str:
    """A request, short enough for a message."""
    body = (request.body or b"")[:2000]
    return f"{request.method} {request.target[:500]} {request.headers} {body!r}"


__all__ = ["FuzzRequest", "described", "fuzz_requests", "is_watch"]
