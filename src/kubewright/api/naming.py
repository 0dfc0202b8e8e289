"""One spelling rule: snake_case in Python, camelCase in JSON.

`ready_replicas` is `readyReplicas`. A trailing underscore, for Python's keywords, is dropped: `from_` is `from`.
JSON names that camel case does not produce, such as `clusterIP`, are given by `field(name="clusterIP")`; their Python
name is still the snake case of the JSON name, so that it can be derived: `cluster_ip`.
"""

from __future__ import annotations

import keyword
import re

# Word starts: a capital after a lower-case letter or digit, and the last capital of a run that starts a new word.
# A plural s belongs to the run before it: podIPs is pod_ips, not pod_i_ps.
_WORD_START = r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?:[A-Z]|$))[a-z])"
_NOT_IDENTIFIER = r"[^0-9A-Za-z]+"


def json_name(python_name: str) -> str:
    """The JSON spelling of a Python field name."""
    if "_" not in python_name:
        return python_name
    first, *rest = python_name.rstrip("_").split("_")
    return first + "".join(word[:1].upper() + word[1:] for word in rest)


def python_name(json_name: str) -> str:
    """The Python spelling of a JSON field name; keywords get a trailing underscore."""
    words = re.sub(_WORD_START, "_", re.sub(_NOT_IDENTIFIER, "_", json_name).strip("_"))
    name = words.lower()
    return f"{name}_" if keyword.iskeyword(name) else name


def default_plural(kind: str) -> str:
    """The resource name Kubernetes' tools guess for a kind: `PodManager` is `podmanagers`, `Policy` is `policies`."""
    lower = kind.lower()
    if lower.endswith(("s", "x", "ch", "sh")):
        return f"{lower}es"
    if lower.endswith("y") and lower[-2:-1] not in ("a", "e", "o", "u"):
        return f"{lower[:-1]}ies"
    return f"{lower}s"
