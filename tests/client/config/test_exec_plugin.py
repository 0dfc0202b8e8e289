from __future__ import annotations

import asyncio
import datetime
import json
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kubewright.client.config.credentials import bearer
from kubewright.client.config.exec_plugin import ExecCredentials, ExecPlugin, InteractiveMode, _Answer, _AnswerStatus
from kubewright.client.errors import CredentialError

SECRET = "s3cr3t-t0k3n"
V1, V1BETA1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
NOW = 1_700_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def timestamp(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat().replace("+00:00", "Z")


def answer(version: str = V1, kind: str = "ExecCredential", **status: str | None) -> str:
    return json.dumps({"kind": kind, "apiVersion": version, "status": status})


def pem_pair() -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "client")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    encoding, encryption = serialization.Encoding.PEM, serialization.NoEncryption()
    private = key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, encryption)
    return certificate.public_bytes(encoding).decode(), private.decode()


class Script:
    """A plugin of one's own: Python code that a test may exchange, and a count of its runs."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "plugin.py"
        self.log = directory / "runs"

    def does(self, code: str) -> None:
        self.path.write_text(f"import os, sys, time\nopen({str(self.log)!r}, 'a').write('x')\n{code}\n")

    def prints(self, output: str) -> None:
        self.does(f"print({output!r})")

    @property
    def runs(self) -> int:
        return len(self.log.read_text()) if self.log.exists() else 0

    def plugin(
        self,
        *,
        api_version: str = V1,
        interactive_mode: InteractiveMode = "Never",
        environment: dict[str, str] | None = None,
        cluster: dict[str, object] | None = None,
        time_limit: float | None = None,
    ) -> ExecPlugin:
        return ExecPlugin(
            command=sys.executable,
            arguments=("-I", "-S", str(self.path), "argument"),
            environment=environment or {},
            api_version=api_version,
            interactive_mode=interactive_mode,
            cluster=cluster,
            origin='of user "ci"',
            time_limit=time_limit,
        )


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.fixture
def stdin() -> Iterator[Callable[[bytes], None]]:
    """Puts bytes on the file descriptor that a child inherits as standard input."""
    saved = os.dup(0)

    def put(data: bytes) -> None:
        reader, writer = os.pipe()
        os.write(writer, data)
        os.close(writer)
        os.dup2(reader, 0)
        os.close(reader)

    yield put
    os.dup2(saved, 0)
    os.close(saved)


async def failure_of(plugin: ExecPlugin) -> str:
    """The message of the plugin's failure, which starts with its name and shows no secret."""
    with pytest.raises(CredentialError) as failure:
        await plugin.run(terminal=lambda: False)
    message = str(failure.value)
    assert SECRET not in message
    return message.removeprefix(f'the credential plugin "{plugin.command}" of user "ci" ')


@pytest.mark.parametrize("version", [V1, V1BETA1])
async def test_token_is_taken_from_the_answer(script: Script, version: str) -> None:
    script.prints(answer(version, token=SECRET))

    assert await script.plugin(api_version=version).run() == (bearer(SECRET), None)


async def test_expiry_is_taken_from_the_answer(script: Script) -> None:
    script.prints(answer(token=SECRET, expirationTimestamp="2023-11-14T23:13:20+01:00"))

    assert await script.plugin().run() == (bearer(SECRET), NOW)


async def test_certificate_is_taken_from_the_answer_with_and_without_a_token(script: Script) -> None:
    chain, key = pem_pair()

    script.prints(answer(clientCertificateData=chain, clientKeyData=key))
    alone, _ = await script.plugin().run()
    script.prints(answer(clientCertificateData=chain, clientKeyData=key, token=SECRET))
    both, _ = await script.plugin().run()

    assert alone.certificate is not None
    assert (alone.certificate.chain, alone.certificate.key) == (chain.encode(), key.encode())
    assert not alone.headers
    assert both == bearer(SECRET, certificate=alone.certificate)


async def test_arguments_environment_and_request_reach_the_plugin(script: Script, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script.does(
        "import json\n"
        "seen = [sys.argv[1:], os.environ['EXTRA'], os.environ['KUBERNETES_EXEC_INFO']]\n"
        f"json.dump(seen, open({str(seen)!r}, 'w'))\n"
        f"print({answer(V1BETA1, token=SECRET)!r})"
    )
    cluster: dict[str, object] = {"server": "https://host", "config": {"audience": "x"}}

    await script.plugin(api_version=V1BETA1, environment={"EXTRA": "more"}, cluster=cluster).run()

    arguments, extra, request = json.loads(seen.read_text())
    assert (arguments, extra) == (["argument"], "more")
    assert json.loads(request) == {
        "kind": "ExecCredential",
        "apiVersion": V1BETA1,
        "spec": {"interactive": False, "cluster": cluster},
    }


async def test_missing_command_comes_with_the_install_hint() -> None:
    plugin = ExecPlugin(
        command="kubewright-no-such-plugin", origin='of user "ci"', install_hint="brew install\n\x1b[1mit"
    )

    message = await failure_of(plugin)

    assert message == "was not found: it is in no directory of PATH; to install it: brew install [1mit"


async def test_missing_file_and_file_that_is_not_executable_have_different_messages(script: Script) -> None:
    missing = await failure_of(ExecPlugin(command=str(script.path), origin='of user "ci"'))
    script.does("")
    forbidden = await failure_of(ExecPlugin(command=str(script.path), origin='of user "ci"'))
    script.path.chmod(stat.S_IRWXU)
    unknown = await failure_of(ExecPlugin(command=str(script.path), origin='of user "ci"'))

    assert missing == "was not found: there is no such file"
    assert forbidden == "is not executable; set its permission with: chmod +x"
    assert unknown == "cannot be started: Exec format error"


async def test_failing_plugin_is_reported_with_its_exit_code_and_stderr(script: Script) -> None:
    script.does(f"print({SECRET!r}); print('no session:\\n  \\x1b[31mlog in', file=sys.stderr); sys.exit(3)")

    assert await failure_of(script.plugin()) == "failed with exit code 3; it said: no session: [31mlog in"


async def test_killed_plugin_is_reported_with_the_signal(script: Script) -> None:
    script.does("os.kill(os.getpid(), 9)")

    assert await failure_of(script.plugin()) == "failed with signal 9"


async def test_only_the_end_of_a_long_stderr_is_reported(script: Script) -> None:
    script.does("print('ü' * 100_000 + ' the reason', file=sys.stderr); sys.exit(1)")

    message = await failure_of(script.plugin())

    assert message.endswith("üü the reason")
    assert len(message) < 1100


@pytest.mark.parametrize(
    ("output", "problem"),
    [
        ("", "printed nothing; expected an ExecCredential as JSON"),
        (f"token: {SECRET}", "printed something other than an ExecCredential as JSON: JSON is malformed"),
        (f'"{SECRET}"', "printed something other than an ExecCredential as JSON: Expected `object`, got `str`"),
        (f'{{"status": {{"token": ["{SECRET}"]}}}}', "Expected `str | null`, got `array` - at `$.status.token`"),
        (answer(kind=SECRET), 'printed an object of another kind; expected "ExecCredential"'),
        (answer(V1BETA1, token=SECRET), f'was configured for apiVersion "{V1}" and answered in "{V1BETA1}"'),
        (answer(SECRET, token=SECRET), f'was configured for apiVersion "{V1}" and answered in another one'),
        (f'{{"kind": "ExecCredential", "apiVersion": "{V1}"}}', "with neither a token nor a certificate in its status"),
        (answer(token=""), "with neither a token nor a certificate in its status"),
        (answer(clientKeyData=SECRET), "printed only one of clientCertificateData and clientKeyData"),
        (answer(clientCertificateData="x", clientKeyData=SECRET), "cannot be used: no PEM certificate was found"),
        (answer(token=f"{SECRET}\n"), "cannot be sent: it holds characters other than printable ASCII"),
        (answer(token=SECRET, expirationTimestamp=SECRET), "Invalid RFC3339 encoded datetime"),
        (answer(token=SECRET, expirationTimestamp="2023-11-14T23:13:20"), "printed something other than"),
    ],
)
async def test_rubbish_is_described_and_not_shown(script: Script, output: str, problem: str) -> None:
    script.prints(output)

    assert problem in await failure_of(script.plugin())


async def test_endless_output_is_cut_off(script: Script) -> None:
    script.does(f"while True: sys.stdout.write({SECRET!r} * 10_000)")

    assert await failure_of(script.plugin()) == "printed more than 1048576 bytes and was killed"


async def test_hanging_plugin_is_killed_after_the_time_limit(script: Script) -> None:
    script.does("time.sleep(600)")

    assert await failure_of(script.plugin(time_limit=0.2)) == "did not finish within 0.2 s and was killed"


async def test_cancellation_kills_the_plugin_and_what_it_started(script: Script, fifo: Path) -> None:
    script.does(
        f"pipe = os.open({str(fifo)!r}, os.O_WRONLY)\n"
        "os.fork()\n"  # both processes hold the pipe open until they are dead
        "os.write(pipe, b'x')\n"
        "time.sleep(600)"
    )
    task = asyncio.create_task(ExecCredentials(script.plugin()).current())
    with await asyncio.to_thread(fifo.open, "rb") as pipe:
        await asyncio.to_thread(pipe.read, 2)

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert await asyncio.wait_for(asyncio.to_thread(pipe.read), 10) == b""


async def test_child_of_a_plugin_that_has_ended_is_killed_when_it_keeps_the_output_open(
    script: Script, fifo: Path
) -> None:
    script.does(
        "parent = os.getpid()\n"
        "if os.fork(): os._exit(0)\n"
        "while os.getppid() == parent: time.sleep(0.001)\n"
        f"pipe = os.open({str(fifo)!r}, os.O_WRONLY)\n"
        "time.sleep(600)"
    )
    task = asyncio.create_task(script.plugin().run())
    with await asyncio.to_thread(fifo.open, "rb") as pipe:
        assert not task.done()

        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert await asyncio.wait_for(asyncio.to_thread(pipe.read), 10) == b""


async def test_agent_that_keeps_only_stderr_open_does_not_delay_the_credential(script: Script, fifo: Path) -> None:
    script.does(
        f"if os.fork(): print({answer(token=SECRET)!r}); sys.stdout.flush(); os._exit(0)\n"
        f"os.close(1)\nopen({str(fifo)!r}).read()"
    )

    assert await script.plugin().run() == (bearer(SECRET), None)

    await asyncio.to_thread(fifo.write_bytes, b"")


async def test_interactive_plugin_gets_the_standard_input(
    script: Script, tmp_path: Path, stdin: Callable[[bytes], None]
) -> None:
    seen = tmp_path / "seen"
    script.does(
        f"open({str(seen)!r}, 'w').write(os.environ['KUBERNETES_EXEC_INFO'] + input())\nprint({answer(token=SECRET)!r})"
    )
    stdin(b"one-time password\n")

    await script.plugin(interactive_mode="IfAvailable").run(terminal=lambda: True)

    request, password = seen.read_text().rsplit("}", 1)
    assert json.loads(request + "}")["spec"] == {"interactive": True}
    assert password == "one-time password"


@pytest.mark.parametrize(("mode", "terminal"), [("Never", True), ("IfAvailable", False)])
async def test_plugin_that_may_not_prompt_gets_no_standard_input(
    script: Script, tmp_path: Path, stdin: Callable[[bytes], None], mode: InteractiveMode, terminal: bool
) -> None:
    seen = tmp_path / "seen"
    script.does(f"open({str(seen)!r}, 'w').write(sys.stdin.read() or 'nothing')\nprint({answer(token=SECRET)!r})")
    stdin(b"not for you\n")

    await script.plugin(interactive_mode=mode).run(terminal=lambda: terminal)

    assert seen.read_text() == "nothing"


async def test_plugin_that_must_prompt_is_not_run_without_a_terminal(script: Script) -> None:
    script.prints(answer(token=SECRET))

    message = await failure_of(script.plugin(interactive_mode="Always"))

    assert "interactiveMode: Always" in message
    assert "standard input is not a terminal" in message
    assert script.runs == 0


async def test_interactive_plugin_is_killed_too(script: Script) -> None:
    script.does("time.sleep(600)")

    with pytest.raises(CredentialError, match=r"did not finish within 0\.2 s"):
        await script.plugin(interactive_mode="Always", time_limit=0.2).run(terminal=lambda: True)


async def test_credential_without_expiry_is_fetched_once(script: Script) -> None:
    clock = Clock()
    credentials = ExecCredentials(script.plugin(), clock=clock)
    script.prints(answer(token=SECRET))

    await credentials.current()
    clock.now += 10 * 365 * 86400
    await credentials.current()

    assert script.runs == 1


@pytest.mark.parametrize(("life", "fresh_for"), [(3600.0, 3540.0), (100.0, 90.0)])
async def test_credential_is_renewed_shortly_before_it_expires(script: Script, life: float, fresh_for: float) -> None:
    clock = Clock()
    credentials = ExecCredentials(script.plugin(), clock=clock)
    script.prints(answer(token="one", expirationTimestamp=timestamp(NOW + life)))
    await credentials.current()
    script.prints(answer(token="two", expirationTimestamp=timestamp(NOW + 2 * life)))

    clock.now = NOW + fresh_for - 0.1
    assert await credentials.current() == bearer("one")
    clock.now = NOW + fresh_for
    assert await credentials.current() == bearer("two")


async def test_valid_credential_stays_in_use_while_the_plugin_fails(
    script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    credentials = ExecCredentials(script.plugin(), clock=clock)
    script.prints(answer(token=SECRET, expirationTimestamp=timestamp(NOW + 1000)))
    await credentials.current()
    script.does("sys.exit(1)")

    clock.now = NOW + 950
    with caplog.at_level(logging.DEBUG):
        assert await credentials.current() == bearer(SECRET)
        assert await credentials.current() == bearer(SECRET)
    assert script.runs == 2, "no new attempt at once"
    clock.now = NOW + 960
    assert await credentials.current() == bearer(SECRET)
    assert script.runs == 3

    clock.now = NOW + 1000
    with pytest.raises(CredentialError, match="failed with exit code 1"):
        await credentials.current()
    assert "failed with exit code 1" in caplog.text
    assert SECRET not in caplog.text


async def test_rejected_credential_is_renewed(script: Script) -> None:
    credentials = ExecCredentials(script.plugin())
    script.prints(answer(token="one"))
    old = await credentials.current()
    script.prints(answer(token="two"))

    assert await credentials.rejected(old)
    assert await credentials.current() == bearer("two")
    assert await credentials.rejected(old), "another request renewed it already"
    assert script.runs == 2


async def test_retry_makes_no_sense_when_the_plugin_returns_the_same(script: Script) -> None:
    credentials = ExecCredentials(script.plugin())
    script.prints(answer(token="one"))
    old = await credentials.current()

    assert await asyncio.gather(*(credentials.rejected(old) for _ in range(8))) == [False] * 8
    assert script.runs == 2


async def test_plugin_that_fails_after_a_rejection_is_the_error(script: Script) -> None:
    credentials = ExecCredentials(script.plugin())
    script.prints(answer(token="one"))
    old = await credentials.current()
    script.does("sys.exit(1)")

    with pytest.raises(CredentialError, match="failed with exit code 1"):
        await credentials.rejected(old)


async def test_concurrent_callers_share_one_run(script: Script) -> None:
    credentials = ExecCredentials(script.plugin())
    script.prints(answer(token=SECRET))

    got = await asyncio.gather(*(credentials.current() for _ in range(16)))

    assert got == [bearer(SECRET)] * 16
    assert script.runs == 1


async def test_concurrent_callers_share_one_failure(script: Script) -> None:
    credentials = ExecCredentials(script.plugin())
    script.does("sys.exit(1)")

    got = await asyncio.gather(*(credentials.current() for _ in range(16)), return_exceptions=True)

    assert {type(result) for result in got} == {CredentialError}
    assert script.runs == 1
    script.prints(answer(token=SECRET))
    assert await credentials.current() == bearer(SECRET), "a failure is not remembered"


async def test_caller_that_gives_up_does_not_take_the_credential_from_the_others(script: Script, fifo: Path) -> None:
    credentials = ExecCredentials(script.plugin())
    script.does(f"open({str(fifo)!r}).read()\nprint({answer(token=SECRET)!r})")
    first, second = (asyncio.create_task(credentials.current()) for _ in range(2))
    with await asyncio.to_thread(fifo.open, "wb"):
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first

    assert await second == bearer(SECRET)
    assert script.runs == 1


async def test_caller_after_a_cancelled_run_starts_another(script: Script, fifo: Path) -> None:
    credentials = ExecCredentials(script.plugin())
    script.does(f"open({str(fifo)!r}).read()")
    first = asyncio.create_task(credentials.current())
    with await asyncio.to_thread(fifo.open, "wb"):
        script.prints(answer(token=SECRET))
        first.cancel()
        await asyncio.sleep(0)
        assert await credentials.current() == bearer(SECRET)
        with pytest.raises(asyncio.CancelledError):
            await first


def test_repr_shows_no_argument_variable_or_answer() -> None:
    plugin = ExecPlugin(command="x", arguments=(SECRET,), environment={"PASSWORD": SECRET}, cluster={"config": SECRET})

    assert SECRET not in repr(plugin)
    assert SECRET not in repr(ExecCredentials(plugin))
    assert SECRET not in repr(_Answer(status=_AnswerStatus(token=SECRET, client_key_data=SECRET)))
