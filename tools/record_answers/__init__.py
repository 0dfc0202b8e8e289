"""What a genuine kube-apiserver answers to objects of its own kinds: good ones, bad ones and changed ones.

The questions are in tests/conformance (questions.yaml, odd_objects.yaml) and tests/api/objects.yaml, the answers in
tests/conformance/answers.json. Unit tests hold the rules of the embedded server to the answers, conformance tests hold
every control plane to them.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, cast

import yaml

from kubewright.api.markers import JSONValue

Document: TypeAlias = dict[str, JSONValue]

_TESTS = Path(__file__).parents[2] / "tests"
_QUESTIONS = _TESTS / "conformance/questions.yaml"
ANSWERS = _TESTS / "conformance/answers.json"
NAMESPACE = "default"
# Answered by admission, or about those who ask: not by the rules of a kind.
_NOT_OURS = ("authentication.k8s.io/", "authorization.k8s.io/", "certificates.k8s.io/", "apiextensions.k8s.io/")
_UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TOKEN_VOLUME = re.compile(r"kube-api-access-\w{5}")
_GENERATED = re.compile(r"Bad_\w{5}")
_ADDRESS = re.compile(r'"10\.0\.0\.\d{1,3}"')
_NOW = re.compile(r"2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True)
class Question:
    """One object to create or, with `changes`, to create and update."""

    title: str
    task: Literal["create", "update"]
    document: Document
    changes: Mapping[str, JSONValue]

    def changed(self, stored: Document) -> Document:
        """What is sent as the update of an object that is stored."""
        return _with(stored, self.changes)


def questions() -> Iterator[Question]:
    """All of them, in the order of the files."""
    for path in (_TESTS / "api/objects.yaml", _TESTS / "conformance/odd_objects.yaml"):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            api_version = str(document["apiVersion"])
            if "beta" not in api_version and not api_version.startswith(_NOT_OURS):
                title = f"{path.stem}: {api_version} {document['kind']} {document['metadata']['name']}"
                yield Question(title, "create", document, {})
    content = yaml.safe_load(_QUESTIONS.read_text(encoding="utf-8"))
    for entry in content["creations"]:
        ((base, fields),) = entry.items()
        document = _with(content["bases"][base], fields)
        yield Question(f"create {base} {json.dumps(fields)}", "create", document, {})
    for entry in content["changes"]:
        ((base, fields),) = entry.items()
        yield Question(f"change {base} {json.dumps(fields)}", "update", content["bases"][base], fields)


def answers() -> Mapping[str, JSONValue]:
    """What is recorded, by the titles of the questions."""
    return cast(Mapping[str, JSONValue], json.loads(ANSWERS.read_text(encoding="utf-8")))


def _with(document: Document, fields: Mapping[str, JSONValue]) -> Document:
    changed = copy.deepcopy(document)
    for path, value in fields.items():
        *steps, last = path.split(".")
        parent: JSONValue = changed
        for step in steps:
            if isinstance(parent, list):
                parent = parent[int(step)]
            elif isinstance(parent, dict):
                parent = parent.setdefault(step, {})
        if isinstance(parent, list):
            parent[int(last)] = value
        elif isinstance(parent, dict):
            parent.pop(last, None)
            if value is not None:
                parent[last] = copy.deepcopy(value)
    return changed


def in_namespace(document: Document, namespace: str) -> Document:
    """A question about another namespace: events are about objects of their own."""
    moved = copy.deepcopy(document)
    for field in ("involvedObject", "regarding", "metadata"):
        reference = moved.get(field)
        if isinstance(reference, dict) and reference.get("namespace") == NAMESPACE:
            reference["namespace"] = namespace
    return moved


def normalized(answer: Document, namespace: str = NAMESPACE) -> JSONValue:
    """An answer without what differs every time: ids, times, generated names, addresses that were handed out."""
    if answer.get("kind") == "Status":
        details = cast(Document, answer.get("details") or {})
        causes = cast(list[Document], details.get("causes") or [])
        # Several checks of kube-apiserver may find the same, which it says once and lists several times.
        fields = dict.fromkeys((cause["reason"], cause.get("field", "")) for cause in causes)
        message = _anonymous(str(answer["message"]), namespace)
        # What follows is a diff of how kube-apiserver holds objects in memory.
        message = _ADDRESS.sub('"IP"', message.partition("\n")[0])
        return {
            "code": answer["code"],
            "message": message,
            "causes": [list(c) for c in fields],
        }
    answer = cast(Document, json.loads(_anonymous(json.dumps(answer), namespace)))
    metadata = cast(Document, answer.get("metadata", {}))
    for field in ("uid", "creationTimestamp", "managedFields", "resourceVersion"):
        metadata.pop(field, None)
    _without_addresses(answer)
    return _without_service_account(answer)


def _anonymous(text: str, namespace: str) -> str:
    text = _GENERATED.sub("Bad_xxxxx", _TOKEN_VOLUME.sub("kube-api-access-xxxxx", _UID.sub("UID", text)))
    return text.replace(f'"{namespace}"', f'"{NAMESPACE}"').replace(f'\\"{namespace}\\"', f'\\"{NAMESPACE}\\"')


def _without_addresses(answer: Document) -> None:
    spec = answer.get("spec")
    if answer.get("kind") == "Service" and isinstance(spec, dict) and str(spec.get("clusterIP")).startswith("10."):
        spec.update(clusterIP="IP", clusterIPs=["IP"])
    status = answer.get("status")
    if isinstance(status, dict):
        if "lastPhaseTransitionTime" in status:
            status["lastPhaseTransitionTime"] = "NOW"
        for condition in cast(list[Document], status.get("conditions") or []):
            if _NOW.fullmatch(str(condition.get("lastTransitionTime"))):
                condition["lastTransitionTime"] = "NOW"


def _without_service_account(answer: Document) -> Document:
    """A pod as it was before admission gave it the account `default` and mounted its token."""
    spec = answer.get("spec")
    if answer.get("kind") != "Pod" or not isinstance(spec, dict):
        return answer
    if spec.get("serviceAccountName") == "default":
        del spec["serviceAccountName"], spec["serviceAccount"]

    def drop(owner: Document, field: str) -> None:
        kept = [item for item in cast(list[Document], owner.get(field, [])) if item["name"] != "kube-api-access-xxxxx"]
        owner.pop(field, None)
        if kept:
            owner[field] = list[JSONValue](kept)

    drop(spec, "volumes")
    for kind in ("containers", "initContainers"):
        for container in cast(list[Document], spec.get(kind, [])):
            drop(container, "volumeMounts")
    return answer
