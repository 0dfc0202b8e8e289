"""Kubernetes' own readers and writers are the truth.

The vectors are bodies of every stable kind, whole and damaged, with what Go makes of them.
"""

from __future__ import annotations

import base64
import contextlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.api.markers import JSONObject
from kubewright.controlplane.embedded.apimachinery.document import text
from kubewright.controlplane.embedded.apimachinery.status import StatusError
from kubewright.controlplane.embedded.protobuf import decode_protobuf
from kubewright.controlplane.embedded.protobuf.encoding import protobuf_pieces

_LINES = Path(__file__).with_name("vectors.jsonl").read_text(encoding="utf-8").splitlines()
_VECTORS: list[JSONObject] = [json.loads(line) for line in _LINES]
_READABLE = [vector for vector in _VECTORS if "object" in vector]
_UNREADABLE = [vector for vector in _VECTORS if "error" in vector]


def body_of(vector: JSONObject) -> bytes:
    return base64.b64decode(str(vector["body"]))


@pytest.mark.parametrize("vector", _READABLE, ids=lambda vector: str(vector["object"]["kind"]))
def test_a_body_becomes_the_json_that_go_writes_of_it(vector: JSONObject) -> None:
    decoded = decode_protobuf(body_of(vector))

    # Compared as text, because to Python 1, 1.0 and True are equal.
    assert json.dumps(decoded, sort_keys=True) == json.dumps(vector["object"], sort_keys=True)


# Go tells a pointer to a zero time from none, and no bytes in a map from empty ones; JSON does not.
_LOST_IN_JSON = re.compile(r'[Tt]ime(stamp)?": null|ata": \{[^}]*": ""')


def _undamaged() -> list[JSONObject]:
    """Of each kind the first, as Go wrote it: damage comes after it."""
    found: dict[tuple[str, str], JSONObject] = {}
    for vector in _READABLE:
        found.setdefault((text(vector, "object", "apiVersion"), text(vector, "object", "kind")), vector)
    return [vector for vector in found.values() if not _LOST_IN_JSON.search(json.dumps(vector["object"]))]


@pytest.mark.parametrize("vector", _undamaged(), ids=lambda vector: str(vector["object"]["kind"]))
def test_the_json_that_go_writes_of_a_body_becomes_the_same_body(vector: JSONObject) -> None:
    assert b"".join(protobuf_pieces(json.dumps(vector["object"]).encode())) == body_of(vector)


@pytest.mark.parametrize("vector", _UNREADABLE, ids=lambda vector: str(vector["error"]))
def test_a_damaged_body_is_refused_with_gos_message(vector: JSONObject) -> None:
    with pytest.raises(StatusError) as raised:
        decode_protobuf(body_of(vector))

    assert (raised.value.code, raised.value.message) == (400, vector["error"])


def test_the_vectors_have_every_stable_kind_and_many_kinds_of_damage() -> None:
    kinds = {f"{text(vector, 'object', 'apiVersion')} {text(vector, 'object', 'kind')}" for vector in _READABLE}

    assert {"v1 Pod", "apps/v1 Deployment", "policy/v1 Eviction", "v1 DeleteOptions", "v1 Status"} <= kinds
    assert len({vector["error"] for vector in _UNREADABLE}) > 10


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(_READABLE), st.data())
def test_a_damaged_body_is_read_or_refused_and_never_a_crash(vector: JSONObject, data: st.DataObject) -> None:
    body = bytearray(body_of(vector))
    for _ in range(data.draw(st.integers(1, 5))):
        body[data.draw(st.integers(4, len(body) - 1))] = data.draw(st.integers(0, 255))

    with contextlib.suppress(StatusError):
        json.dumps(decode_protobuf(bytes(body)), allow_nan=False)
