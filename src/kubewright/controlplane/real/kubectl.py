"""kubectl as a function: runs it as a given user, with nothing of the caller's own configuration."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

from kubewright.controlplane.errors import KubectlFailed
from kubewright.controlplane.real.processes import ProcessGroup


async def run_kubectl(
    group: ProcessGroup, program: Path, arguments: Sequence[str], *, kubeconfig: str, stdin: str | None, check: bool
) -> subprocess.CompletedProcess[str]:
    """The finished kubectl. Cancelling ends it. With `check`, an exit code other than 0 raises KubectlFailed."""
    with tempfile.NamedTemporaryFile("w", dir=group.directory, prefix="kubeconfig-") as config:
        config.write(kubeconfig)
        config.flush()
        # The preferences file of the person at the keyboard (kuberc) must not change what a test does.
        environment = {"KUBECONFIG": config.name, "KUBECACHEDIR": str(group.directory / "kubectl"), "KUBERC": "off"}
        process = group.spawn(
            [os.fspath(program), *arguments],
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            environment=environment,
        )
        finished = asyncio.ensure_future(
            asyncio.to_thread(process.communicate, None if stdin is None else stdin.encode())
        )
        try:
            stdout, stderr = (output.decode(errors="replace") for output in await asyncio.shield(finished))
        except asyncio.CancelledError:
            process.kill()
            await asyncio.wait([finished])
            raise
    if check and process.returncode != 0:
        # Flags may hold passwords and tokens, so the message ends before the first one.
        words = " ".join(takewhile(lambda word: not word.startswith("-"), arguments))
        message = f"`kubectl {words}` exited with {process.returncode}: {stderr.strip() or stdout.strip()}"
        raise KubectlFailed(message, returncode=process.returncode, stdout=stdout, stderr=stderr)
    return subprocess.CompletedProcess([program.name, *arguments], process.returncode, stdout, stderr)
