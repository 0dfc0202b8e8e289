"""The Python object that a command line names: `podmanager:setup`, or `podmanager` for its `setup`.

Modules are found as `python -m` finds them, in the current directory first.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from kubewright.api.errors import KubernetesError, explain_misuse
from kubewright.cli.suggestion import did_you_mean
from kubewright.cli.user_frames import traceback_of
from kubewright.manager.program import run

DEFAULT = "setup"

_NAME = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"


class LoadError(KubernetesError):
    """What a command line names cannot be used; the message has the reason, and of a program's error the traceback."""


class LoadedObject(NamedTuple):
    """An object of a module, and how it was named."""

    module: ModuleType
    attribute: str
    value: object

    @property
    def name(self) -> str:
        """As on the command line."""
        return f"{self.module.__name__}:{self.attribute}"

    @property
    def program(self) -> str:
        """What `python -m` runs: the closest package around the module that can be run, or the module itself."""
        package = self.module.__name__ if hasattr(self.module, "__path__") else self.module.__package__ or ""
        while package:
            if self._has_main(package):
                return package
            package = package.rpartition(".")[0]
        return self.module.__name__

    @property
    def is_runnable(self) -> bool:
        """Whether `python -m` can run it: a package needs a `__main__.py`."""
        is_package = self.program == self.module.__name__ and hasattr(self.module, "__path__")
        return not is_package or self._has_main(self.program)

    @staticmethod
    def _has_main(package: str) -> bool:
        return importlib.util.find_spec(f"{package}.__main__") is not None


def load(name: str) -> LoadedObject:
    """The object of that name. Raises `LoadError`."""
    module_name, colon, attribute = name.partition(":")
    attribute = attribute if colon else DEFAULT
    if not re.fullmatch(_NAME, module_name) or not re.fullmatch(_NAME, attribute):
        raise LoadError(f'"{name}" does not name a setup function: expected PACKAGE:SETUP, such as {_guess(name)}')
    module = _module(module_name)
    value: object = module
    for step in attribute.split("."):
        if not hasattr(value, step):
            raise LoadError(f'{module_name} has no "{attribute}"{_instead(attribute, module)}')
        value = getattr(value, step)
    return LoadedObject(module, attribute, value)


def _guess(name: str) -> str:
    """The name that is probably meant by what may be the path of a file."""
    path, _, attribute = name.partition(":")
    file = Path(path.removesuffix(".py"))
    file = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    steps = [step for step in file.parts if step not in ("/", ".", "__init__")]
    module = ".".join(steps)
    return f"{module if re.fullmatch(_NAME, module) else 'podmanager'}:{attribute or DEFAULT}"


def _module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _broken(name, error) from None
        raise LoadError(_not_found(name, error.name, here)) from None
    except (SystemExit, Exception) as error:
        raise _broken(name, error) from None


def _broken(name: str, error: BaseException) -> LoadError:
    if isinstance(error, SystemExit) or _is_of_run(error):
        return LoadError(
            f"{name} runs a program when it is imported: do that only where it is run itself, below "
            'if __name__ == "__main__":'
        )
    explain_misuse(error)
    return LoadError(f"{name} cannot be imported:\n{traceback_of(error).rstrip()}")


def _is_of_run(error: BaseException) -> bool:
    """Whether `run` raised it, which it does where it is called while this command runs."""
    code = inspect.unwrap(run).__code__
    return any(frame.f_code is code for frame, _ in traceback.walk_tb(error.__traceback__))


def _not_found(name: str, missing: str, here: str) -> str:
    """That there is no such module, or that one of the packages around it does not exist."""
    package, _, last = missing.rpartition(".")
    if package:
        found = sys.modules[package]
        if not hasattr(found, "__path__"):
            return f'there is no module "{name}": {package} is a module, and not a package'
        among, where = found.__path__, f"in {package}"
    else:
        among, where = [here], f"in {here} or among the installed packages"
    known = [module.name for module in pkgutil.iter_modules(among)]
    meant = did_you_mean(last, known, f"{package}." if package else "")
    return f'there is no module "{missing}" {where}{meant}'


def _instead(attribute: str, module: ModuleType) -> str:
    functions = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    close = did_you_mean(attribute, functions)
    return close or f": name the function that adds its controllers, as {module.__name__}:{DEFAULT} would"
