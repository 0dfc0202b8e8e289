"""What the API server asks about ChaosPods: a time to stop is in the future, and not moved far."""

from __future__ import annotations

from datetime import timedelta

from kubewright import FieldCause, Review, defaults, now, validates

from .types import ChaosPod

FIRST_STOP = timedelta(minutes=1)
MAX_DELAY = timedelta(hours=1)


@defaults(ChaosPod, on=["CREATE"])
def default_next_stop(review: Review[ChaosPod]) -> None:
    """Without a time to stop, or with one that has passed, a new ChaosPod is stopped in a minute."""
    spec = review.object.spec
    if spec.next_stop is None or spec.next_stop < now():
        spec.next_stop = now() + FIRST_STOP


@validates(ChaosPod)
def check_next_stop(review: Review[ChaosPod]) -> list[FieldCause]:
    """A time that is new has not passed, and is at most an hour after the old one, or after now when that has passed.

    One that stays is not checked: other fields of a ChaosPod may change at any time.
    """
    new, old = review.object.spec.next_stop, review.old.spec.next_stop if review.old is not None else None
    if new is None or new == old:
        return []
    if new < now():
        return [FieldCause.invalid("spec.nextStop", new, "must not be in the past")]
    if old is not None and new > max(old, now()) + MAX_DELAY:
        return [FieldCause.invalid("spec.nextStop", new, "must not be moved by more than an hour")]
    return []
