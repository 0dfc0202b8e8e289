"""A genuine control plane for tests, which do not run where its binaries are not available."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from kubewright.controlplane import BinariesNotFound, ControlPlane, ControlPlaneError


@contextmanager
def genuine_control_plane(*, controller_manager: bool = True) -> Iterator[ControlPlane]:
    """kube-apiserver and etcd, and kube-controller-manager unless that is not wanted, while the block runs."""
    try:
        # Nothing is compacted: what a test finds must not depend on how long the run has lasted before it.
        flags = ["--etcd-compaction-interval=0"]
        plane = ControlPlane.real(controller_manager=controller_manager, api_server_flags=flags)
        _run(plane.start())
    except BinariesNotFound as error:
        pytest.skip(f"needs a real control plane: {error}")  # the words by which the plugin knows such tests
    except ControlPlaneError as error:
        pytest.fail(f"kubewright: {error}", pytrace=False)
    try:
        yield plane
    finally:
        _run(plane.stop())


def _run(work: Coroutine[None, None, None]) -> None:
    # In a thread of its own: the event loop of this one, if any, belongs to the test framework.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, work).result()
