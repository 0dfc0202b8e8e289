from __future__ import annotations

import pytest

from kubewright.deployment import Operator
from kubewright.manifest import ManifestError


def test_an_operator_is_deployed_to_a_namespace_named_after_it() -> None:
    assert Operator(name="ferries", image="ferries:1").namespace == "ferries-system"
    assert Operator(name="ferries", image="ferries:1", namespace="ops").namespace == "ops"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"name": "Ferries"}, 'is called "Ferries": expected at most 55 lower-case letters'),
        ({"name": "f" * 56}, "expected at most 55"),
        ({"namespace": "a.b"}, 'the namespace "a.b"'),
        ({"image": ""}, 'the image "": expected a name and a tag, such as "ferries:1.0"'),
        ({"image": "ferries :1"}, 'the image "ferries :1"'),
        ({"replicas": 0}, "replicas=0: expected at least 1"),
        ({"grace": float("inf")}, "grace=inf: expected seconds, 0 or more"),
        ({"grace": "30s"}, "Operator(grace=...): found str, expected a number"),
        ({"image": None}, "Operator(image=...): found NoneType, expected a text"),
        ({"replicas": "3"}, "Operator(replicas=...): found str, expected a number"),
        ({"arguments": "--zone=eu"}, 'Operator(arguments=...): found str, expected a list of texts, such as ["--zone'),
        ({"env": {"A": "b"}}, "Operator(env=...): found dict, expected a list of EnvVar(...)"),
        ({"objects": [{"kind": "Secret"}]}, "Operator(objects=...): found dict, expected a list of objects"),
        ({"kinds": ["Pod"]}, "Operator(kinds=...): found str, expected a list of classes"),
    ],
)
def test_what_no_server_accepts_is_refused(options: dict[str, object], expected: str) -> None:
    given = {"name": "ferries", "image": "ferries:1", **options}
    with pytest.raises(ManifestError) as refused:
        Operator(**given)  # type: ignore[arg-type]  # of various types
    assert expected in str(refused.value)
