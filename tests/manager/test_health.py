from __future__ import annotations

import asyncio
import logging
import re

import pytest

from kubewright.manager.health import Checks
from kubewright.manager.serving import EndpointRequest, EndpointResponse, Server
from kubewright.testing.virtual_time import run_virtual


async def ask(checks: Checks, path: str = "/readyz", **parameters: list[str]) -> tuple[int, str]:
    answer = await checks.answer(EndpointRequest(path, parameters))
    assert answer.content_type == "text/plain; charset=utf-8"
    return answer.status, answer.body.decode()


async def test_ok_is_the_whole_response_when_all_is_well() -> None:
    checks = Checks("readyz")
    assert await ask(checks) == (200, "ok")
    checks.add("caches", lambda: None)
    assert await ask(checks) == (200, "ok")


async def test_a_failing_check_is_a_500_with_the_whole_list_and_the_reason() -> None:
    checks = Checks("readyz")
    checks.add("webhooks", lambda: None)
    checks.add("caches", lambda: "pods are not listed yet")
    assert await ask(checks) == (
        500,
        "[-]caches failed: pods are not listed yet\n[+]ping ok\n[+]webhooks ok\nreadyz check failed\n",
    )
    assert await checks.failing() == {"caches": "pods are not listed yet"}


async def test_verbose_shows_the_list_also_when_all_is_fine() -> None:
    checks = Checks("healthz")
    assert await ask(checks, "/healthz", verbose=[""]) == (200, "[+]ping ok\nhealthz check passed\n")


async def test_excluded_checks_are_not_called_and_unknown_ones_are_named() -> None:
    def never() -> str | None:
        raise AssertionError

    checks = Checks("readyz")
    checks.add("caches", never)
    assert await ask(checks, exclude=["caches"]) == (200, "ok")
    assert await ask(checks, exclude=["caches", "b", "a"], verbose=[""]) == (
        200,
        "[+]caches excluded: ok\n[+]ping ok\n"
        'warn: some health checks cannot be excluded: no matches for "a","b"\nreadyz check passed\n',
    )


async def test_one_check_can_be_probed_alone() -> None:
    checks = Checks("readyz")
    checks.add("caches", lambda: "pods are not listed yet")
    assert await ask(checks, "/readyz/ping") == (200, "ok")
    assert await ask(checks, "/readyz/caches") == (500, "internal server error: pods are not listed yet\n")
    assert (await ask(checks, "/readyz/nothing"))[0] == 404


async def test_checks_may_be_added_and_change_between_probes() -> None:
    checks = Checks("readyz")
    reason: str | None = "not yet"
    assert (await ask(checks))[0] == 200
    checks.add("late", lambda: reason)
    assert (await ask(checks))[0] == 500
    reason = None
    assert (await ask(checks))[0] == 200


async def test_a_check_that_raises_has_failed_and_its_message_is_for_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> str | None:
        raise ValueError("with a secret")

    checks = Checks("readyz")
    checks.add("broken", broken)
    with caplog.at_level(logging.ERROR):
        status, text = await ask(checks)
    assert status == 500
    assert "[-]broken failed: the check raised ValueError; the log has more\n" in text
    assert "the check broken of readyz raised" in caplog.text


async def test_a_check_may_be_async() -> None:
    checks = Checks("readyz")

    async def database() -> str | None:
        await asyncio.sleep(0)
        return "no connection"

    checks.add("database", database)
    assert await ask(checks, "/readyz/database") == (500, "internal server error: no connection\n")


def test_a_check_that_takes_too_long_has_failed_and_holds_up_no_other() -> None:
    async def main() -> None:
        checks = Checks("readyz")

        async def hangs() -> str | None:
            await asyncio.Event().wait()
            return None

        checks.add("one", hangs, timeout=2)
        checks.add("two", hangs, timeout=3)
        checks.add("three", lambda: None)
        began = asyncio.get_running_loop().time()
        assert await checks.failing() == {"one": "no result within 2 s", "two": "no result within 3 s"}
        assert asyncio.get_running_loop().time() == began + 3
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main)


async def test_a_timeout_within_a_check_is_an_error_of_the_check() -> None:
    async def slow() -> str | None:
        raise TimeoutError("of the database")

    checks = Checks("readyz")
    checks.add("database", slow)
    assert await checks.failing() == {"database": "the check raised TimeoutError; the log has more"}


@pytest.mark.parametrize("result", [True, False, 0, Exception("no")])
async def test_a_check_that_returns_another_type_has_failed_and_the_reason_names_it(result: object) -> None:
    checks = Checks("readyz")
    checks.add("wrong", lambda: result)  # type: ignore[arg-type, return-value]  # the mistake
    assert await checks.failing() == {
        "wrong": f"the check returned {result!r}: expected None when all is well, or the reason as text"
    }


@pytest.mark.filterwarnings("error")
async def test_a_check_that_was_called_instead_of_passed_is_refused() -> None:
    async def database() -> str | None:
        return None

    with pytest.raises(TypeError, match=r'the check "database" of readyz is <coroutine .*: expected a function'):
        Checks("readyz").add("database", database())  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize("name", ["", "a/b"])
def test_names_that_cannot_be_in_a_path_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f'"{name}" cannot be the name of a check of readyz')):
        Checks("readyz").add(name, lambda: None)


@pytest.mark.parametrize("name", ["ping", "caches"])
def test_a_name_is_taken_once(name: str) -> None:
    checks = Checks("readyz")
    checks.add("caches", lambda: None)
    with pytest.raises(ValueError, match=f'readyz has a check "{name}" already'):
        checks.add(name, lambda: None)


async def test_a_server_answers_for_the_path_and_what_is_below() -> None:
    server = Server("0")
    Checks("healthz").serve(server)
    Checks("readyz").serve(server)
    for path in ("/healthz", "/healthz/", "/healthz/ping", "/readyz", "/readyz/ping"):
        answer = server.answer(EndpointRequest(path))
        assert not isinstance(answer, EndpointResponse)
        assert await answer == EndpointResponse(body=b"ok"), path
    assert server.answer(EndpointRequest("/healthzz")) == EndpointResponse(404, body=b"404 page not found\n")
