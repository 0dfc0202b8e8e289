from __future__ import annotations

import subprocess
import sys

import pytest

from kubewright.controlplane import ControlPlane
from kubewright.controlplane.https import request

SUITE = """
def test_real(real_control_plane): pass
def test_namespace(namespace): pass
def test_other(): pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Three tests, two of which need a real control plane, where there is none."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.delenv("KUBEWRIGHT_REQUIRE_REAL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    pytester.makepyfile(test_suite=SUITE)
    return pytester


def test_tests_without_a_control_plane_do_not_run_and_one_line_says_so(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess()

    result.assert_outcomes(passed=1, skipped=2)
    assert result.ret == pytest.ExitCode.OK
    assert sum("DID NOT RUN" in line for line in result.outlines) == 1
    assert result.outlines[-1] == (
        "2 tests DID NOT RUN without a real control plane: test_suite.py (2); "
        "to run them: make control-plane (or: python -m kubewright.controlplane.binaries)"
    )


def test_what_is_missing_is_told_by_its_name(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_clients="""
        import pytest
        def test_go(): pytest.skip("needs Go: there is no go on the PATH")
        def test_unrelated(): pytest.skip("needs better weather: it rains")
        """
    )

    result = suite.runpytest_subprocess("test_clients.py", "test_suite.py")

    assert result.outlines[-2:] == [
        "1 tests DID NOT RUN without Go: test_clients.py (1); "
        "to run them: put go on the PATH, and let it download its modules once",
        "2 tests DID NOT RUN without a real control plane: test_suite.py (2); "
        "to run them: make control-plane (or: python -m kubewright.controlplane.binaries)",
    ]


@pytest.mark.parametrize("mode", ["strict", "auto"])
def test_an_embedded_control_plane_lives_in_the_loop_of_its_test(suite: pytest.Pytester, mode: str) -> None:
    suite.makepyfile(
        test_embedded="""
        import pytest
        from kubewright.api.core.v1 import ConfigMap, Namespace
        from kubewright.api.meta import ObjectMeta

        pytestmark = pytest.mark.asyncio

        @pytest.mark.parametrize("time", [1, 2])
        async def test_fresh_each_time(embedded_control_plane, time):
            async with embedded_control_plane.client() as client:
                assert (await client.get(Namespace, "default")).metadata.name == "default"
                await client.create(ConfigMap(metadata=ObjectMeta(name="mine")))
        """
    )

    suite.makeini(f"[pytest]\nasyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function")
    result = suite.runpytest_subprocess("test_embedded.py", "-W", "error")

    result.assert_outcomes(passed=2)


def test_tests_that_did_not_run_fail_the_run_where_they_are_required(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEWRIGHT_REQUIRE_REAL", "1")

    result = suite.runpytest_subprocess()

    result.assert_outcomes(passed=1, skipped=2)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED, KUBEWRIGHT_REQUIRE_REAL=1: 2 tests DID NOT RUN*"])


def test_a_run_that_needs_no_control_plane_is_left_alone(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEWRIGHT_REQUIRE_REAL", "1")

    result = suite.runpytest_subprocess("-k", "other")

    assert result.ret == pytest.ExitCode.OK
    assert "DID NOT RUN" not in result.stdout.str()


def test_assets_that_cannot_be_used_are_an_error_without_a_traceback(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(suite.path))

    result = suite.runpytest_subprocess("-k", "real")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [f"kubewright: KUBEBUILDER_ASSETS is {suite.path}, but kube-apiserver is missing there*"]
    )
    assert "Traceback" not in result.stdout.str()


def test_loading_the_plugin_loads_nothing_heavy() -> None:
    script = (
        "import sys, pytest\n"
        "import kubewright\n"
        "before = set(sys.modules)\n"
        "import kubewright.testing.plugin\n"
        "print(*sorted({name.partition('.')[0] for name in set(sys.modules) - before}))\n"
        "print(*(name for name in sys.modules if name.startswith('kubewright.controlplane')))\n"
    )

    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    roots, control_plane = loaded.splitlines()
    assert "cryptography" not in roots.split()
    assert control_plane == ""


def test_a_namespace_belongs_to_one_test_and_is_ready_for_pods(
    real_control_plane: ControlPlane, namespace: str
) -> None:
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/default"

    assert request(real_control_plane.url, real_control_plane.admin.ssl_context(), "GET", account)[0] == 200
    assert namespace.startswith("test-a-namespace-belongs-to-one-test")
