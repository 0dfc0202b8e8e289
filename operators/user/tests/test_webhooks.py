from __future__ import annotations

import pytest
from operators.user import User, UserSpec, check_user, default_user, setup
from operators.user.names import DISPLAY_NAME, OWNER
from operators.user.tests.deploying import KINDS, deployed
from operators.user.types import DEFAULT_EXPIRATION

from kubewright import Client, ControlPlane, FieldCause, Invalid, Manager, ObjectMeta, Review
from kubewright.testing import Install, LocalWebhooks, Running, unique_name


def user(name: str = "alice", **annotations: str) -> User:
    keys = {"owner": OWNER, "display_name": DISPLAY_NAME}
    return User(metadata=ObjectMeta(name=name, annotations={keys[each]: text for each, text in annotations.items()}))


async def test_annotations_and_life_are_defaulted_and_wrong_annotations_are_denied(
    control_plane: ControlPlane, admin: Client, install: Install, running: Running, local_webhooks: LocalWebhooks
) -> None:
    await install(*KINDS)
    async with deployed(control_plane) as own:
        manager = Manager(own, **local_webhooks.options)
        setup(manager)
        async with running(manager), local_webhooks.installed(manager, admin):
            name = unique_name("user")
            given = User(metadata=ObjectMeta(name=name), spec=UserSpec(csr_expiration_seconds=0))
            created = await admin.create(given, dry_run=True)
            assert created.metadata.annotations == {DISPLAY_NAME: name, OWNER: name}
            assert created.spec.csr_expiration_seconds == DEFAULT_EXPIRATION
            with pytest.raises(Invalid) as invalid:
                await admin.create(user(owner="Bob Smith", display_name=""), dry_run=True)
            assert [(cause.field, cause.message) for cause in invalid.value.status.causes] == [
                (f"metadata.annotations[{DISPLAY_NAME}]", 'Invalid value: "": must not be empty'),
                (f"metadata.annotations[{OWNER}]", 'Invalid value: "Bob Smith": must be the name of a User'),
            ]


def test_what_is_given_is_kept() -> None:
    review = Review(user(owner="bob", display_name="Alice"))
    default_user.function(review)
    assert review.object == user(owner="bob", display_name="Alice")


def test_a_name_that_is_still_to_be_generated_is_no_default() -> None:
    review = Review(User(metadata=ObjectMeta(generate_name="user-")))
    default_user.function(review)
    assert review.object.metadata.annotations == {}


@pytest.mark.parametrize("owner", ["bob", "b" * 60, "0-0"])
def test_an_owner_is_the_name_of_a_user(owner: str) -> None:
    assert check_user.function(Review(user(owner=owner))) == []


@pytest.mark.parametrize("owner", ["", "Bob", "b" * 61, "-bob", "bob-", "bob.smith", "bob\n"])
def test_an_owner_that_can_be_no_user_is_denied(owner: str) -> None:
    wrong = FieldCause.invalid(f"metadata.annotations[{OWNER}]", owner, "must be the name of a User")
    assert check_user.function(Review(user(owner=owner))) == [wrong]


def test_an_annotation_that_stays_is_not_checked() -> None:
    """Or a User of the time before the webhook could not lose its finalizer any more."""
    wrong = user(owner="Bob Smith", display_name="")
    assert check_user.function(Review(wrong, old=wrong)) == []
    assert check_user.function(Review(wrong, old=user(owner="bob", display_name="Bob"))) != []
