"""What is run in containers to fill a content volume and to archive it: POSIX shell, for busybox as for any image.

A content volume has the content in `project`, and `.complete` once all of it is there: whatever interrupts a script,
the next run starts over. An archive volume has `content.tar.gz`, which appears there as a whole.
"""

from __future__ import annotations

from typing import Final

SEED: Final = """\
set -eu
# $1: the content volume; $2: the directory of the image that the content begins with
if [ -e "$1/.complete" ]; then exit 0; fi
rm -rf "$1/project"
mkdir "$1/project"
if [ -d "$2" ]; then cp -a "$2/." "$1/project/"; fi
sync
: > "$1/.complete"
sync
"""

RESTORE: Final = """\
set -eu
# $1: the content volume; $2: the archive volume
if [ -e "$1/.complete" ] || [ ! -e "$2/content.tar.gz" ]; then exit 0; fi
rm -rf "$1/project"
mkdir "$1/project"
tar -xzf "$2/content.tar.gz" -C "$1/project"
sync
: > "$1/.complete"
sync
"""
"""Leaves a content of which there is no archive to SEED."""

ARCHIVE: Final = """\
set -eu
# $1: the content volume; $2: the archive volume; $3: the archive that the content was to be restored from
rm -f "$2"/partial*
if [ ! -e "$1/.complete" ] && [ ! -e "$3/content.tar.gz" ]; then exit 0; fi
partial="$(mktemp "$2/partial.XXXXXX")"
if [ -e "$1/.complete" ]; then tar -czf "$partial" -C "$1/project" .
else cp "$3/content.tar.gz" "$partial"
fi
sync
mv "$partial" "$2/content.tar.gz"
sync
"""
"""A content that was never made is what it was to be made from: that archive, or nothing, which is the image.

Of two that archive at once, as when the Job of one was deleted without its pod, neither takes what the other has begun
for its own.
"""
