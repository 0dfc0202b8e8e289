"""The conditions in an object's status, one per type.

    set_condition(widget, "Ready", False, "PodsNotReady", "2 of 3 pods are ready")
    if set_condition(widget, "Degraded", True, "DiskFull", "…"):
        events.warning(widget, "DiskFull", "…")       # once per change

    with reporting(widget, "NamespaceReady"):
        await client.apply(namespace)                 # True when the block ends, False when it raises

Nothing is sent here: the object is changed, and `client.status.patch` writes it with the rest of the status. The object
is any whose status has `conditions: list[Condition]`, or conditions of its own type, as Kubernetes' own kinds have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from typing import Literal, Protocol, TypeVar, cast

from msgspec import Struct

from kubewright.api import Condition, ObjectMeta, now
from kubewright.api.model import has_field
from kubewright.api.shape import fields_of
from kubewright.client.errors import APIError, Conflict
from kubewright.patterns.not_yet import NotYet

_REASON = re.compile("[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?")
_STATUS: dict[bool | None, Literal["True", "False", "Unknown"]] = {True: "True", False: "False", None: "Unknown"}
_MAX_REASON, _MAX_MESSAGE = 1024, 32768  # the server's limits


class AnyCondition(Protocol):
    """What the conditions of all kinds have in common."""

    @property
    def type(self) -> str:
        """Which aspect of the object it is about."""

    @property
    def status(self) -> str:
        """Either "True", "False" or "Unknown"."""

    @property
    def reason(self) -> str | None:
        """A word for programs."""

    @property
    def message(self) -> str | None:
        """A sentence for users."""


ConditionT_co = TypeVar("ConditionT_co", bound=AnyCondition, covariant=True)


class _AnyStatus(Protocol[ConditionT_co]):
    @property
    def conditions(self) -> Sequence[ConditionT_co]: ...


class _AnyConditioned(Protocol[ConditionT_co]):
    @property
    def metadata(self) -> ObjectMeta: ...

    @property
    def status(self) -> _AnyStatus[ConditionT_co]: ...


class Conditioned(_AnyConditioned[AnyCondition], Protocol):
    """An object whose status has conditions, in a list."""


def set_condition(
    obj: Conditioned, type: str, verdict: bool | None, reason: str, message: str = "", *, at: datetime | None = None
) -> bool:
    """Set the condition of that type, and return whether anything but its generation changed.

    `verdict` None is "Unknown". There is one condition of a type, others are not touched, and the time of transition
    changes only with the verdict; it is now, or `at` for programs with a clock of their own. `observedGeneration` is
    the generation of the object as it was read, where conditions have it.
    """
    if len(message) > _MAX_MESSAGE:
        message = message[: _MAX_MESSAGE - 3] + "..."
    status = _STATUS.get(verdict)
    if status is None:  # a string would be true, "False" too
        raise TypeError(f"set_condition(obj, {type!r}, {verdict!r}, …): expected True, False or None for Unknown")
    # Of whatever class: what others lack of these fields is left out below, and their texts may be None.
    before = cast("Condition | None", get_condition(obj, type))
    if before is not None and before.status == status and before.reason == reason and (before.message or "") == message:
        if "observed_generation" in before.__struct_fields__:
            before.observed_generation = obj.metadata.generation
        return False
    if not _REASON.fullmatch(reason) or len(reason) > _MAX_REASON:
        raise ValueError(
            f"the reason of the condition {type} is {reason!r}: expected a CamelCase word, such as "
            '"PodsNotReady"; the sentence for users is the message'
        )
    at = now() if at is None else at.replace(microsecond=0)
    if before is None:
        before = _class_of_conditions(obj.status.__class__)(
            type=type, status=status, reason=reason, message=message, last_transition_time=at
        )
        _list(obj).append(before)
    elif before.status != status:
        before.status, before.last_transition_time = status, at
    before.reason, before.message = reason, message
    if "observed_generation" in before.__struct_fields__:
        before.observed_generation = obj.metadata.generation
    if "last_update_time" in before.__struct_fields__:  # Deployments and others
        cast(_Updated, before).last_update_time = at
    return True


class _Updated(Protocol):
    last_update_time: datetime


@cache
def _class_of_conditions(status: type[object]) -> type[Condition]:
    item = fields_of(cast("type[Struct]", status))["conditions"].item
    return cast("type[Condition]", item.model) if item is not None and item.model is not None else Condition


def _list(obj: Conditioned) -> list[AnyCondition]:
    return cast("list[AnyCondition]", obj.status.conditions)


def get_condition(obj: _AnyConditioned[ConditionT_co], type: str) -> ConditionT_co | None:
    """The condition of that type; None when there is none."""
    for condition in obj.status.conditions:
        if condition.type == type:
            return condition
    return None


def remove_condition(obj: Conditioned, type: str) -> bool:
    """Remove the condition of that type, and return whether there was one."""
    conditions = _list(obj)
    for position, condition in enumerate(conditions):
        if condition.type == type:
            del conditions[position]
            return True
    return False


def is_true(obj: _AnyConditioned[AnyCondition], type: str) -> bool:
    """Whether the condition says "True" of the present generation: what was true of an earlier spec may not be now.

    A condition that does not say which generation it is about is believed.
    """
    condition = get_condition(obj, type)
    return condition is not None and _holds(condition, obj.metadata.generation)


def summarize(obj: Conditioned, *types: str, into: str = "Ready") -> bool:
    """Set the condition `into` to whether all of `types` are true, and return whether that changed.

    It is False with the reason of the first one that is not true, and names all of those in its message. A condition
    that is missing, or about an earlier generation, is not true.
    """
    if not types:
        raise ValueError(f"summarize(obj, …, into={into!r}) needs the types of the conditions to summarize")
    generation = obj.metadata.generation
    true = {condition.type for condition in obj.status.conditions if _holds(condition, generation)}
    if true.issuperset(types):
        return set_condition(obj, into, True, "Done")
    untrue = [type for type in types if type not in true]
    first = get_condition(obj, untrue[0])
    reason = first.reason if first is not None and first.status != "True" and first.reason else ""
    reason = reason if _REASON.fullmatch(reason) else "NotReady"
    return set_condition(obj, into, False, reason, "; ".join(_described(obj, type) for type in untrue))


@contextmanager
def reporting(obj: Conditioned, type: str, *, reason: str = "Done") -> Iterator[None]:
    """Set the condition to the outcome of the block: True when it ends or returns, False when it raises.

    The exception is raised again. A cancellation and a lost race say nothing about the object, and leave the condition
    as it is.
    """
    try:
        yield
    except Exception as error:
        if not is_lost_race(error):
            set_condition(obj, type, False, reason_of(error), message_of(error))
        raise
    set_condition(obj, type, True, reason)


def reason_of(error: Exception) -> str:
    """The reason of a condition that is false because of `error`: the server's own, where it has one."""
    own = error.reason if isinstance(error, NotYet | APIError) else ""
    for reason in (own, type(error).__name__.strip("_")):
        if _REASON.fullmatch(reason):
            return reason
    return "Error"


def is_lost_race(error: Exception) -> bool:
    """Whether another writer was faster: the reconcile is done again on what that one wrote."""
    return isinstance(error, Conflict) and error.is_optimistic_lock


def message_of(error: Exception) -> str:
    """The message of a condition that is false because of `error`."""
    return str(error) or type(error).__name__


def _holds(condition: AnyCondition, generation: int) -> bool:
    if condition.status != "True":
        return False
    if not has_field(condition, "observed_generation"):
        return True
    return cast("Condition", condition).observed_generation in (None, generation)


def _described(obj: Conditioned, type: str) -> str:
    condition = get_condition(obj, type)
    if condition is None:
        return f"{type} is not known yet"
    if condition.status == "True":
        return f"{type} is about an earlier generation"
    return f"{type}: {condition.message or condition.reason}"
