"""The last resort of leader election: a thread that ends the process when its event loop cannot.

A loop that is blocked can neither renew the lease nor stop its work. Once another may lead, this process must not be.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kubewright.manager.log import last_words

_INTERVAL = 0.25


def exit_at_once(message: str) -> None:
    """End the process, whatever it is doing."""
    sys.stderr.write(f"{last_words('kubewright', message)}\n")
    sys.stderr.flush()
    os._exit(1)


@contextmanager
def fenced(deadline: Callable[[], float | None], exit_: Callable[[str], None] = exit_at_once) -> Iterator[None]:
    """While the block runs, `exit_` is called when `time.monotonic()` passes the deadline, if there is one."""
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(_INTERVAL):
            limit = deadline()
            if limit is not None and time.monotonic() > limit:
                exit_("the lease has run out while the event loop was blocked; exiting, as another may lead now")
                return

    thread = threading.Thread(target=look, name="leader fence", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
