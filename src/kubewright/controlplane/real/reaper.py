"""Removes what a killed process cannot remove itself: its child processes and their directory.

Runs as a program of its own, leader of the process group that the programs join. It makes the directory, writes its
path to standard output and then waits for the end of standard input, which comes when the process that started it
closes the pipe or ends, however it ends. A directory that is still there by then was abandoned: the group is killed,
the directory removed.

Started by path and without site-packages, so it may import nothing but the standard library.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

_ATTEMPTS = 200


def main(parent_directory: str) -> None:
    """Make a directory in `parent_directory`, and outlive the process at the other end of standard input."""
    # The signals that end a test run reach the whole group; the reaper must outlive it.
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    directory = Path(tempfile.mkdtemp(prefix="kubewright-", dir=parent_directory))
    try:
        os.write(1, os.fsencode(directory) + b"\n")
        os.close(1)
    except BrokenPipeError:
        pass
    while os.read(0, 4096):
        pass
    if directory.is_dir():
        _reap(directory)


def _reap(directory: Path) -> None:
    group = os.getpgrp()
    if os.fork():
        # Stays until it is killed with its group, so that the group's id cannot be reused.
        while True:
            signal.pause()
    os.setsid()
    os.killpg(group, signal.SIGKILL)
    for _ in range(_ATTEMPTS):
        # A dying program may finish the system call that creates one more file.
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.is_dir():
            return
        time.sleep(0.05)


if __name__ == "__main__":
    main(sys.argv[1])
