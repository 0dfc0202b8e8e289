"""The operator that a command line names, as it is deployed: `podmanager:setup`, and the flags that describe it.

What is named is a setup function, or an `Operator`, or a function without parameters that returns one.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from types import NoneType
from typing import Final, TypeGuard, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from kubewright.api.core.v1 import EnvFromSource, SecretEnvSource
from kubewright.api.errors import KubernetesError, explain_misuse
from kubewright.cli.loading import DEFAULT, LoadedObject, LoadError, load
from kubewright.cli.samples import samples_of
from kubewright.cli.user_frames import traceback_of
from kubewright.deployment import Operator, with_setup
from kubewright.manager.setup import SetupResult, check_setup

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def add_operator_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what names and describes an operator. What follows `--` is its own flags, in `arguments`."""
    parser.add_argument(
        "operator",
        metavar="PACKAGE:SETUP",
        help="the setup function of the operator, in a module that python -m finds here; or a function without "
        f"parameters that returns a kubewright.deployment.Operator (default function: {DEFAULT})",
    )
    parser.add_argument("--name", metavar="NAME", help="as given to run(name=...) (default: that of the package)")
    parser.add_argument("--namespace", metavar="NAME", help="the namespace it is deployed to (default: NAME-system)")
    parser.add_argument(
        "--env-from-secret",
        action="append",
        default=[],
        metavar="NAME",
        help="a Secret in that namespace whose keys are environment variables of its pods; may be repeated",
    )
    parser.set_defaults(arguments=[])


def add_image_argument(parser: argparse.ArgumentParser, default: str) -> None:
    """Add the image, where the command has a use for it."""
    parser.add_argument("--image", metavar="IMAGE", help=f"the image of the operator (default: {default})")


class Setup(Struct):
    """A setup function, and the type of its options, if it has any."""

    function: Callable[..., SetupResult]
    options: type[Struct] | None


class NamedOperator(Struct):
    """An operator, and the program that it is of."""

    operator: Operator
    program: str
    """What `python -m` runs."""
    is_runnable: bool
    """Whether it can."""
    setup: Setup | None = None
    """None where the whole operator was named."""


async def named_operator(options: argparse.Namespace) -> NamedOperator:
    """The operator that parsed arguments describe. Raises `LoadError` and `ManifestError`.

    What the program prints goes to standard error: the output is the command's own.
    """
    with redirect_stdout(sys.stderr):
        return await _named_operator(options)


async def _named_operator(options: argparse.Namespace) -> NamedOperator:
    named = load(options.operator)
    given = {"name": options.name, "namespace": options.namespace, "image": getattr(options, "image", None)}
    flags = {field: value for field, value in given.items() if value is not None}
    try:
        found = await _whole_operator(named)
        if found is not None:
            _refuse_flags(named, options)
            return NamedOperator(replace(found, **flags) if flags else found, named.program, named.is_runnable)
        setup = _setup(named)
        name = named.program.rpartition(".")[2].replace("_", "-").lower()
        image = f"{flags.get('name', name)}:latest"
        secrets = [EnvFromSource(secret_ref=SecretEnvSource(name=secret)) for secret in options.env_from_secret]
        described = Operator(**{"name": name, "image": image, **flags}, arguments=options.arguments, env_from=secrets)
        operator = await with_setup(described, setup.function, options=setup.options)
    except KubernetesError:
        raise
    except (SystemExit, Exception) as error:  # an exit with 0 would be a success that has done nothing
        explain_misuse(error)
        raise LoadError(f"{named.name} failed:\n{traceback_of(error).rstrip()}") from None
    samples = [*operator.samples, *samples_of(named, operator)]
    return NamedOperator(replace(operator, samples=samples), named.program, named.is_runnable, setup)


async def _whole_operator(named: LoadedObject) -> Operator | None:
    """The operator, where one or a function that returns one is named."""
    value = named.value
    if _is_function(value) and not _parameters(value):
        value = value()
        if inspect.isawaitable(value):
            value = await value
        if not isinstance(value, Operator):
            raise LoadError(
                f"{named.name} has no parameters and returns {_described(value)}: expected a setup function, called as "
                f"{named.attribute}(manager), or one that returns a kubewright.deployment.Operator"
            )
    return value if isinstance(value, Operator) else None


def _refuse_flags(named: LoadedObject, options: argparse.Namespace) -> None:
    """Raise `LoadError` for what can only be given where the whole Operator is made, which is all but the image."""
    given = {"--name": options.name, "--namespace": options.namespace, "--env-from-secret": options.env_from_secret}
    refused = [*(flag for flag, value in given.items() if value), *options.arguments]
    if refused:
        raise LoadError(f"{named.name} is a whole Operator: give {refused[0]} there, and not on the command line")


def _setup(named: LoadedObject) -> Setup:
    value = named.value
    if not _is_function(value):
        raise LoadError(
            f"{named.name} is {_described(value)}: expected the function that adds its controllers, called as "
            f"{named.attribute}(manager)"
        )
    function = cast("Callable[..., SetupResult]", value)
    options = _options(named, function)
    try:
        check_setup(function, has_options=options is not None)
    except TypeError as error:
        raise LoadError(f"{named.name} cannot be used: {error}") from None
    return Setup(function, options)


def _described(value: object) -> str:
    return f"the class {value.__name__}" if inspect.isclass(value) else f"an object of the type {type(value).__name__}"


def _options(named: LoadedObject, function: Callable[..., SetupResult]) -> type[Struct] | None:
    """The type of the second argument, `Options` or `Options | None`; None where there is none, or it needs none."""
    positional = [each for each in _parameters(function) if each.kind in _POSITIONAL]
    if len(positional) < 2 or any(each.default is each.empty for each in positional[2:]):
        return None
    second = positional[1]
    try:
        annotation = inspect.signature(function, eval_str=True).parameters[second.name].annotation
    except (NameError, AttributeError) as error:
        raise LoadError(
            f"{named.name}: the type of {second.name} cannot be found ({error}): import it outside of if TYPE_CHECKING:"
        ) from None
    for found in get_args(annotation) if NoneType in get_args(annotation) else (annotation,):
        if inspect.isclass(found) and issubclass(found, Struct):
            return found
    if second.default is not second.empty:
        return None
    raise LoadError(
        f"{named.name}: annotate {second.name} with the class that is given to run(options=...), so that its flags "
        "are known"
    )


def _is_function(value: object) -> TypeGuard[Callable[..., object]]:
    return not inspect.isclass(value) and callable(value)


def _parameters(function: Callable[..., object]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())
