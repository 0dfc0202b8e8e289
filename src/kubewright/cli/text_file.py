"""Reading a file of manifests, with a sentence for one that cannot be read."""

from __future__ import annotations

from pathlib import Path

from kubewright.manifest.errors import ManifestError


def text_of(path: Path) -> str:
    """The text of a file. Raises `ManifestError`."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ManifestError(f"{path}: not YAML: it is not UTF-8") from None
    except OSError as error:
        raise ManifestError(f"cannot read {path}: {error.strerror}") from None
