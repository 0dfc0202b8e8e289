"""The command in this process, in a thread of its own: a control plane of the test may run beside it."""

from __future__ import annotations

import asyncio
import io
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from kubewright.cli.main import main


class Done(NamedTuple):
    """How a command has ended, and what it has printed."""

    code: int
    output: str
    errors: str


def command(*arguments: str, cwd: Path | None = None) -> Done:
    """`kubewright ARGUMENTS` in a directory, whose modules are forgotten afterwards. There is no terminal."""
    output, errors = io.StringIO(), io.StringIO()
    path, directory = list(sys.path), cwd or Path.cwd()
    with redirect_stdout(output), redirect_stderr(errors), chdir(directory):
        try:
            main(arguments)
            code = 0
        except SystemExit as end:
            if isinstance(end.code, str):
                errors.write(f"{end.code}\n")
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        finally:
            sys.path[:] = path
            for name, module in list(sys.modules.items()):
                if cwd is not None and Path(getattr(module, "__file__", None) or "/").is_relative_to(cwd):
                    del sys.modules[name]
    return Done(code, output.getvalue(), errors.getvalue())


async def command_beside(*arguments: str, cwd: Path | None = None) -> Done:
    """The same while the event loop of the test goes on."""
    return await asyncio.to_thread(command, *arguments, cwd=cwd)
