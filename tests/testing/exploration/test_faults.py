from __future__ import annotations

from kubewright.testing.exploration.faults import FAULT_KINDS, SENTENCES, APICall, Fault, plan_named, plans

CALLS = [
    APICall(1, "GET", "/api/v1/namespaces/default/configmaps/a", "operator-1"),
    APICall(2, "POST", "/api/v1/namespaces/default/configmaps", "operator-1"),
    APICall(3, "PATCH", "/api/v1/namespaces/default/configmaps/a", "operator-1"),
]


def test_each_fault_strikes_once_at_each_call_that_it_can_strike_at() -> None:
    names = [plan.name for plan in plans(CALLS, FAULT_KINDS, 0)]
    assert len(names) == len(set(names))
    read, created, patched = CALLS
    assert {name for name in names if name.endswith(f"@{read.number}") and "jitter" not in name} == {
        "throttle@1",
        "error@1",
        "errors@1",
        "timeout@1",
    }
    assert {f"{kind}@{patched.number}" for kind in FAULT_KINDS} <= set(names)
    assert f"conflict@{created.number}" not in names


def test_a_fault_waits_for_a_call_that_it_can_strike_at() -> None:
    read, created, patched = CALLS
    fault = Fault("conflict", 1)
    assert [fault.strikes(call) for call in (read, created, patched)] == [False, False, True]
    assert not Fault("conflict", patched.number + 1).strikes(patched)


def test_a_world_follows_from_its_name() -> None:
    for plan in plans(CALLS, FAULT_KINDS, 50):
        assert plan_named(plan.name, CALLS, FAULT_KINDS) == plan


def test_at_most_one_fault_of_a_seeded_world_needs_the_second_replica() -> None:
    for plan in plans(CALLS, FAULT_KINDS, 200):
        assert sum(fault.kind in ("takeover", "stale") for fault in plan.faults) == plan.needs_replica


def test_every_fault_has_a_sentence() -> None:
    assert set(SENTENCES) == set(FAULT_KINDS)
    assert all("{call}" in sentence for sentence in SENTENCES.values())
