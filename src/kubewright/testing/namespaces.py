"""Names of namespaces and objects that no two tests share."""

from __future__ import annotations

import re
import uuid

_MAX_STEM = 40


def unique_name(test_name: str) -> str:
    """A unique name that shows which test it belongs to; for a namespace or any other object."""
    stem = re.sub(r"[^a-z0-9]+", "-", test_name.lower())[:_MAX_STEM].strip("-")
    return f"{stem or 'test'}-{uuid.uuid4().hex[:8]}"
