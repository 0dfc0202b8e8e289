from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from kubewright import Client, Manager, Model, ObjectMeta, Resource, resource
from kubewright.api.core.v1 import Namespace, ServiceAccount
from kubewright.manifest.crd import crd_yaml
from kubewright.testing import Install, Running
from kubewright.testing.audit_file import requests_in
from kubewright.testing.fixtures import own_namespace

SUITE = """
def test_real(real_control_plane): pass
def test_both(control_plane): pass
def test_other(): pass
"""


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Its runs do not rewrite assertions: pytest would rewrite all of kubewright, as a package that has a plugin, which
    took most of their time where no bytecode is kept.
    """
    monkeypatch.setenv("PYTEST_ADDOPTS", "--assert=plain")
    return pytester


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Four tests, two of which need a real control plane, where there is none."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.delenv("KUBEWRIGHT_REQUIRE_REAL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(pytester.path / "cache"))
    pytester.makepyfile(test_suite=SUITE)
    return pytester


def test_tests_without_a_control_plane_do_not_run_and_one_line_reports_it(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess()

    result.assert_outcomes(passed=2, skipped=2)
    assert result.ret == pytest.ExitCode.OK
    assert sum("DID NOT RUN" in line for line in result.outlines) == 1
    assert result.outlines[-1] == (
        "2 tests DID NOT RUN without a real control plane: test_suite.py (2); "
        "to run them: make control-plane (or: python -m kubewright.controlplane.binaries)"
    )


def test_what_is_missing_is_reported_by_name(suite: pytest.Pytester) -> None:
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

    result.assert_outcomes(passed=2, skipped=2)
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

    result = suite.runpytest_subprocess("-k", "test_real")

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


@pytest.mark.parametrize(
    ("arguments", "ini", "passed", "deselected"),
    [
        (["--control-plane=embedded"], "", 2, 1),
        ([], "control_plane = embedded", 2, 1),
        (["--control-plane=both"], "control_plane = real", 2, 0),
        (["--control-plane=real"], "control_plane = embedded", 1, 1),
    ],
)
def test_the_control_planes_are_selected_by_option_and_by_configuration(
    suite: pytest.Pytester, arguments: list[str], ini: str, passed: int, deselected: int
) -> None:
    suite.makeini(f"[pytest]\nasyncio_mode = auto\n{ini}")

    result = suite.runpytest_subprocess("-k", "both or other", *arguments)

    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["deselected"]) == (passed, deselected + 1)


def test_a_control_plane_that_does_not_exist_is_refused_with_those_that_do(suite: pytest.Pytester) -> None:
    suite.makeini("[pytest]\nasyncio_mode = auto\ncontrol_plane = kind")

    result = suite.runpytest_subprocess()

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(['ERROR: control_plane is "kind": expected embedded, real or both'])


async def test_a_namespace_belongs_to_one_test_and_takes_pods(
    admin: Client, namespace: str, request: pytest.FixtureRequest
) -> None:
    assert namespace.startswith("test-a-namespace-belongs-to-one-test")
    assert (await admin.get(ServiceAccount, "default", namespace=namespace)).metadata.uid
    async with own_namespace(admin, request.node.name) as other:
        assert other != namespace
    gone = await admin.find(Namespace, other)
    assert gone is None or gone.metadata.deletion_timestamp is not None


class SprocketSpec(Model):
    size: int = 1


@resource("kit.example.com/v1")
class Sprocket(Resource[SprocketSpec, None]):
    """Installed by a test."""


async def test_kinds_are_served_once_they_are_installed(
    admin: Client, namespace: str, install: Install, tmp_path: Path
) -> None:
    widgets = tmp_path / "widgets.yaml"
    widgets.write_text(crd_yaml(Sprocket).replace("sprocket", "fromfile").replace("Sprocket", "FromFile"))

    await install(Sprocket, widgets)
    await install(Sprocket)

    spec = SprocketSpec(size=2)
    sprocket = await admin.create(Sprocket(metadata=ObjectMeta(name="a", namespace=namespace), spec=spec))
    assert sprocket.metadata.uid
    assert {found.kind for found in await admin.discover("kit.example.com/v1")} == {"FromFile", "Sprocket"}


async def test_a_manager_runs_while_the_block_does(admin: Client, running: Running) -> None:
    manager = Manager(admin)
    life: list[str] = []
    begun = asyncio.Event()

    async def live() -> None:
        life.append("begins")
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            life.append("ends")

    manager.add(live)
    async with running(manager):
        await begun.wait()
        assert life == ["begins"]
    assert life == ["begins", "ends"]


async def test_a_block_that_takes_too_long_ends_with_its_manager(admin: Client, running: Running) -> None:
    with pytest.raises(TimeoutError):
        async with running(Manager(admin), timeout=0):
            await asyncio.Event().wait()


def test_a_wrong_call_in_a_test_is_reported_with_the_fix(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from kubewright import Client, Config
        from kubewright.api.core.v1 import Pod

        def test_it():
            Client(Config(server="http://127.0.0.1:1")).list(Pod, label_selector="app=web")
        """
    )
    result = pytester.runpytest_subprocess()
    result.stdout.fnmatch_lines(["E * unexpected keyword argument 'label_selector': write labels="])


RECORDED = """
import pytest
from kubewright import Permission
from kubewright.api.core.v1 import Pod
from kubewright.testing import restricted_client


@pytest.mark.parametrize("verb", ["list", "create"])
async def test_it(verb, embedded_control_plane):
    async with restricted_client(embedded_control_plane, [Permission(Pod, "list")]) as client:
        await client.list(Pod)
        await client.list(Pod)
"""


@pytest.mark.parametrize("processes", ["0", "2"])
def test_what_restricted_clients_request_is_recorded(processes: str, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(RECORDED)
    pytester.makeini("[pytest]\nasyncio_mode = auto\n")
    used = pytester.path / "used.jsonl"
    used.write_text("of an earlier run\n")
    result = pytester.runpytest_subprocess("-n", processes, "--record-permissions", "used.jsonl")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines([f"recorded 2 requests in {used}"])
    requests = list(requests_in(used))
    assert len({request.user for request in requests}) == 2
    assert [(request.verb, request.resource, request.is_of_test) for request in requests] == [
        ("list", "pods", True)
    ] * 2


def test_a_run_without_restricted_clients_says_so(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("--record-permissions", "used.jsonl", "-k", "nothing")
    result.stdout.fnmatch_lines(["no test has used restricted_client, so that there is nothing in *used.jsonl"])


def test_a_record_that_cannot_be_written_is_a_sentence(suite: pytest.Pytester) -> None:
    result = suite.runpytest_subprocess("--record-permissions", "nowhere/used.jsonl")
    result.stderr.fnmatch_lines(["ERROR: --record-permissions: cannot write *: No such file or directory"])
