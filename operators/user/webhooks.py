"""What the API server asks about Users: how people call them, who owns their workspaces, how long tokens live."""

from __future__ import annotations

import re

from kubewright import FieldCause, Review, defaults, validates

from .names import DISPLAY_NAME, MAX_USER_LENGTH, OWNER
from .types import DEFAULT_EXPIRATION, User

_USER_NAME = re.compile(rf"(?=.{{1,{MAX_USER_LENGTH}}}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@defaults(User)
def default_user(review: Review[User]) -> None:
    """A User is called by its name, owns its workspace, and has tokens of the usual life, unless it says otherwise."""
    user = review.object
    if not user.spec.csr_expiration_seconds:
        user.spec.csr_expiration_seconds = DEFAULT_EXPIRATION
    if user.metadata.name:  # which a server has not made yet of a generateName
        for annotation in (DISPLAY_NAME, OWNER):
            user.metadata.annotations.setdefault(annotation, user.metadata.name)


@validates(User)
def check_user(review: Review[User]) -> list[FieldCause]:
    """An annotation that is new says something: an owner is the name of a User. One that stays is not checked."""
    new, old = review.object.metadata.annotations, review.old.metadata.annotations if review.old is not None else {}
    causes: list[FieldCause] = []
    if new.get(DISPLAY_NAME) == "" != old.get(DISPLAY_NAME):
        causes.append(FieldCause.invalid(_path(DISPLAY_NAME), "", "must not be empty"))
    owner = new.get(OWNER)
    if owner is not None and owner != old.get(OWNER) and not _USER_NAME.fullmatch(owner):
        causes.append(FieldCause.invalid(_path(OWNER), owner, "must be the name of a User"))
    return causes


def _path(annotation: str) -> str:
    return f"metadata.annotations[{annotation}]"
