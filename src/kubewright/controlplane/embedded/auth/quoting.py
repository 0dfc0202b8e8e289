"""Lists of strings as the server's messages show them."""

from __future__ import annotations

from collections.abc import Iterable

from kubewright.controlplane.embedded.apimachinery.gotext import quoted


def quoted_list(texts: Iterable[str]) -> str:
    """Several strings, as Go's `%q` prints them: `["a" "b"]`."""
    return f"[{' '.join(map(quoted, texts))}]"
