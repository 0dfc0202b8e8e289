"""An error of the user's program as its traceback, without the frames that are not the user's."""

from __future__ import annotations

import sysconfig
import traceback
from pathlib import Path

import kubewright

_OURS = Path(kubewright.__file__).parent
_PYTHON = Path(sysconfig.get_path("stdlib"))
_INSTALLED = ("site-packages", "dist-packages")


def traceback_of(error: BaseException) -> str:
    """The traceback without frames of kubewright, of Python's own modules and of its import system."""
    shown = traceback.TracebackException.from_exception(error)
    _keep_users(shown)
    return "".join(shown.format()).removeprefix("Traceback (most recent call last):\n" if not shown.stack else "")


def _keep_users(shown: traceback.TracebackException) -> None:
    shown.stack = traceback.StackSummary.from_list([each for each in shown.stack if _is_users(each.filename)])
    for other in (shown.__cause__, shown.__context__, *(shown.exceptions or ())):
        if other is not None:
            _keep_users(other)


def _is_users(name: str) -> bool:
    file = Path(name)
    is_pythons = name.startswith("<frozen ") or (
        file.is_relative_to(_PYTHON) and not any(installed in file.parts for installed in _INSTALLED)
    )
    return not is_pythons and not file.is_relative_to(_OURS)
