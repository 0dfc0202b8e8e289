from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from operators.chaospod import ChaosPod, ChaosPodSpec, check_next_stop, default_next_stop, setup
from operators.conftest import AsOperator

from kubewright import Client, Field, Invalid, Manager, ObjectMeta, Review, now
from kubewright.api.core.v1 import Container, PodSpec, PodTemplateSpec
from kubewright.testing import Install, LocalWebhooks, Running

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


def chaos(next_stop: datetime | None = None) -> ChaosPod:
    template = PodTemplateSpec(spec=PodSpec(containers=[Container(name="app", image="app:1")]))
    return ChaosPod(metadata=ObjectMeta(name="it"), spec=ChaosPodSpec(template=template, next_stop=next_stop))


async def test_item_22_a_default_is_applied_and_an_invalid_update_is_denied(
    admin: Client,
    namespace: str,
    install: Install,
    running: Running,
    as_operator: AsOperator,
    local_webhooks: LocalWebhooks,
) -> None:
    await install(ChaosPod)
    client = admin.in_namespace(namespace)
    manager = Manager(await as_operator(setup), namespaces=[namespace], **local_webhooks.options)
    setup(manager)
    async with running(manager), local_webhooks.installed(manager, admin, namespace=namespace):
        before = now()
        created = await client.create(chaos())
        assert created.spec.next_stop is not None
        assert created.spec.next_stop > before + timedelta(seconds=58)
        # What the operator itself writes is admitted.
        there = await client.wait_for(created, Field("status.lastRun").satisfies(bool, "is set"), timeout=60)
        assert there is not None

        for moved, message in (
            (2 * HOUR, "must not be moved by more than an hour"),
            (-HOUR, "must not be in the past"),
        ):
            there.spec.next_stop = now() + moved
            with pytest.raises(Invalid) as invalid:
                await client.patch(there)
            (cause,) = invalid.value.status.causes
            assert (cause.field, cause.reason) == ("spec.nextStop", "FieldValueInvalid")
            assert cause.message.endswith(message)
        await client.delete(created)


@pytest.mark.parametrize("given", [None, -SECOND])
def test_a_time_that_is_missing_or_has_passed_is_in_a_minute(given: timedelta | None) -> None:
    review = Review(chaos(now() + given if given is not None else None))
    default_next_stop.function(review)
    assert review.object.spec.next_stop is not None
    assert review.object.spec.next_stop > now() + timedelta(seconds=50)


def test_a_time_to_come_is_kept() -> None:
    review = Review(chaos(wanted := now() + 2 * HOUR))
    default_next_stop.function(review)
    assert review.object.spec.next_stop == wanted


@pytest.mark.parametrize(
    ("old", "new", "is_admitted"),
    [
        (HOUR, HOUR + 60 * SECOND, True),
        (HOUR, 3 * HOUR, False),
        (HOUR, -60 * SECOND, False),
        # Of an operator that was away for a while.
        (-5 * HOUR, 20 * SECOND, True),
        (-5 * HOUR, 2 * HOUR, False),
        (None, 5 * HOUR, True),
        (-HOUR, None, True),
    ],
)
def test_a_time_is_moved_into_the_future_and_not_far(
    old: timedelta | None, new: timedelta | None, is_admitted: bool
) -> None:
    begin = now()
    before, after = (chaos(begin + each if each is not None else None) for each in (old, new))
    assert (check_next_stop.function(Review(after, old=before)) == []) is is_admitted


def test_a_time_that_has_passed_does_not_keep_the_rest_from_changing() -> None:
    passed = now() - HOUR
    assert check_next_stop.function(Review(chaos(passed), old=chaos(passed))) == []
    assert check_next_stop.function(Review(chaos(passed))) != []
