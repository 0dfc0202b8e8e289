"""`step`: one part of the desired state of an object, and the condition that reports it.

    @step("NamespaceReady")
    async def namespace(context: UserContext) -> None:
        await context.ensure(Namespace(metadata=ObjectMeta(name=f"ns-{context.object.metadata.name}")))

    @step("QuotaReady", needs=[namespace], when=has_quota)
    async def quota(context: UserContext) -> Done:
        return Done("3 quotas are set", reason="QuotasSet")

A step is an async function of the context. It returns when that state is reached, raises `NotYet` to wait, and any
other exception is an error. What its condition then says may be returned: `Done`. It remains callable, so that it is
tested by calling it, and may be part of several pipelines.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, Never, Protocol, TypeAlias, TypeVar, overload

from msgspec import Struct

ContextT = TypeVar("ContextT")
ContextT_contra = TypeVar("ContextT_contra", contravariant=True)


class Done(Struct, frozen=True):
    """What the condition of a step says that has succeeded. `reason` is a CamelCase word.

    With `degraded` the state was reached in part only, and there is nothing to do or to wait for: the condition is
    False, and the steps that need this one run nevertheless.
    """

    message: str = ""
    reason: str = "Done"
    degraded: bool = False


class Step(Generic[ContextT_contra]):
    """A step of a pipeline, made by `step`."""

    def __init__(
        self,
        function: Callable[[ContextT_contra], Awaitable[Done | None]],
        condition: str,
        needs: Sequence[AnyStep],
        when: Callable[[ContextT_contra], bool] | None,
    ) -> None:
        self.name: str = getattr(function, "__name__", condition)
        self.condition = condition
        self.needs = tuple(needs)
        self.when = when
        self._function = function
        self.__doc__ = function.__doc__

    def __call__(self, context: ContextT_contra) -> Awaitable[Done | None]:
        """Run the step, without its condition."""
        return self._function(context)

    @property
    def is_optional(self) -> bool:
        """Whether there are objects that it does not apply to."""
        return self.when is not None or any(need.is_optional for need in self.needs)

    def __repr__(self) -> str:
        return f"<step {self.name}: {self.condition}>"


AnyStep: TypeAlias = Step[Never]
"""A step of whatever context."""


class StepDecorator(Protocol):
    """What `step` returns."""

    def __call__(self, function: Callable[[ContextT], Awaitable[Done | None]], /) -> Step[ContextT]:
        """The function as a step."""


@overload
def step(condition: str, *, needs: Sequence[AnyStep] = ()) -> StepDecorator: ...
@overload
def step(
    condition: str, *, needs: Sequence[AnyStep] = (), when: Callable[[ContextT], bool]
) -> Callable[[Callable[[ContextT], Awaitable[Done | None]]], Step[ContextT]]: ...
def step(
    condition: str, *, needs: Sequence[AnyStep] = (), when: Callable[[ContextT], bool] | None = None
) -> Callable[[Callable[[ContextT], Awaitable[Done | None]]], Step[ContextT]]:
    """Make an async function a step that is reported by the condition of that type.

    It runs after the steps that it `needs`, and only if they succeeded. Where `when`, a function of the context, says
    no it does not apply: its condition is removed, and the steps that need it do not apply either.
    """
    given: object = condition
    if not isinstance(given, str):
        raise TypeError('@step needs the type of its condition: write @step("NamespaceReady")')
    for need in needs:
        if not isinstance(need, Step):
            raise TypeError(f"@step({condition!r}, needs=[{need!r}]): expected steps, the functions themselves")

    def decorate(function: Callable[[ContextT], Awaitable[Done | None]]) -> Step[ContextT]:
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"@step({condition!r}): {function!r} is not an async function of the context")
        return Step(function, condition, needs, when)

    return decorate
