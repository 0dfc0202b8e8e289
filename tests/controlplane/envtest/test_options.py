from __future__ import annotations

import ipaddress
import re
import subprocess
from pathlib import Path

import pytest

from kubewright.controlplane.binaries import find_binaries
from kubewright.controlplane.certificates import CertificateAuthority, signing_key
from kubewright.controlplane.embedded.apimachinery.document import items
from kubewright.controlplane.embedded.auth.users import UserInfo
from kubewright.controlplane.envtest.flags import FlagError, known_flags, parse_flags
from kubewright.controlplane.envtest.kube_apiserver import FLAGS
from kubewright.controlplane.envtest.options import PLUGINS, APIServerOptions, read_options

KNOWN = known_flags(FLAGS.read_text().splitlines())
QUIET = ("--allow-privileged=true", "--etcd-servers=http://127.0.0.1:2379")


def options(*flags: str) -> APIServerOptions:
    return read_options(parse_flags([*QUIET, *flags], KNOWN))


def refusal(*flags: str) -> str:
    with pytest.raises(FlagError) as refused:
        options(*flags)
    return str(refused.value)


def test_the_defaults_are_those_of_kube_apiserver() -> None:
    found = options()
    assert (found.host, found.port, found.etcd) == ("0.0.0.0", 6443, "http://127.0.0.1:2379")
    assert found.server.always_allow
    assert found.warnings == ()


def test_flags_without_an_effect_are_named() -> None:
    found = options(
        "--audit-log-path=-",
        "--authorization-mode=Node,RBAC",
        "--service-cluster-ip-range=10.1.0.0/16,fd00::/112",
        "--enable-admission-plugins=AlwaysPullImages,LimitRanger",
        "--disable-admission-plugins=ServiceAccount,CertificateSigning",
    )
    assert found.warnings == (
        "--audit-log-path has no effect here",
        "--service-cluster-ip-range: only the first range has an effect here",
        "--authorization-mode: Node has no effect here",
        "--enable-admission-plugins: AlwaysPullImages has no effect here",
        "--disable-admission-plugins: CertificateSigning has no effect here",
    )
    assert not found.server.always_allow
    assert found.server.network == ipaddress.ip_network("10.1.0.0/16")
    assert "ServiceAccount" in found.server.disabled_plugins


def test_an_authorization_mode_that_is_not_available_is_refused() -> None:
    assert refusal("--authorization-mode=Webhook") == (
        "--authorization-mode: Webhook is not available here (there are: AlwaysAllow, RBAC, Node)"
    )


def test_an_admission_plugin_that_does_not_exist_is_refused_in_its_words() -> None:
    assert refusal("--disable-admission-plugins=Nope") == 'disable-admission-plugins plugin "Nope" is unknown'


def test_the_admission_plugins_are_those_of_the_pinned_kube_apiserver() -> None:
    said = subprocess.run([find_binaries().kube_apiserver, "--help"], capture_output=True, text=True, timeout=60).stdout
    listed = re.search(r"--enable-admission-plugins .*list of admission plugins: ([^.]+)\.", said)
    assert listed is not None
    assert set(listed[1].split(", ")) == PLUGINS


def test_a_missing_serving_certificate_is_made_in_the_directory_and_kept(tmp_path: Path) -> None:
    options(f"--cert-dir={tmp_path}")
    made = [(tmp_path / name).read_text() for name in ("apiserver.crt", "apiserver.key")]
    assert (tmp_path / "apiserver.key").stat().st_mode & 0o077 == 0
    options(f"--cert-dir={tmp_path}")
    assert [(tmp_path / name).read_text() for name in ("apiserver.crt", "apiserver.key")] == made


def test_files_that_hold_something_else_are_named(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "short").write_text("token,jane\n")
    pair = CertificateAuthority().server("a", hosts=["a"])
    (tmp_path / "a.crt").write_text(pair.certificate)
    (tmp_path / "other.key").write_text(signing_key())

    assert refusal(f"--client-ca-file={tmp_path}/empty").endswith("empty' holds no certificate (PEM)")
    assert refusal(f"--service-account-signing-key-file={tmp_path}/empty").endswith("holds no private key (PEM)")
    key_flag = f"--service-account-signing-key-file={tmp_path}/other.key"
    assert refusal(key_flag, f"--service-account-key-file={tmp_path}/empty").endswith("no RSA or P-256 key (PEM)")
    assert "at least 3 columns (token, user name, user uid), found 2 in line 1" in refusal(
        f"--token-auth-file={tmp_path}/short"
    )
    assert "are given together" in refusal(f"--tls-cert-file={tmp_path}/a.crt")
    mismatch = refusal(f"--tls-cert-file={tmp_path}/a.crt", f"--tls-private-key-file={tmp_path}/other.key")
    assert mismatch.startswith(f"cannot serve with the certificate '{tmp_path}/a.crt' and the key")


def test_static_tokens_are_read_with_names_uids_and_groups(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text('one,jane,1\n\ns3cret,joe,2,"a,b"\n')
    found = options(f"--token-auth-file={tmp_path}/tokens")
    assert found.tokens == {"one": UserInfo("jane", (), "1"), "s3cret": UserInfo("joe", ("a", "b"), "2")}
    assert "s3cret" not in repr(found)


def test_tokens_are_signed_by_one_key_and_checked_by_those_of_the_key_files(tmp_path: Path) -> None:
    def written(name: str) -> str:
        (tmp_path / name).write_text(signing_key())
        return str(tmp_path / name)

    issuer, own, other = "--service-account-issuer=https://here/", written("own"), written("other")
    signs_own = (issuer, f"--service-account-signing-key-file={own}")
    both = (f"--service-account-key-file={own}", f"--service-account-key-file={other}")
    by_other = options(issuer, f"--service-account-signing-key-file={other}").signer.sign({"sub": "x"})

    assert options(*signs_own, *both).signer.verified(by_other) == {"sub": "x", "iss": "https://here/"}
    assert len(items(options(*signs_own, *both).signer.keys(), "keys")) == 2


def test_a_port_that_is_none_is_refused() -> None:
    for port in ("0", "-1", "65536"):
        assert refusal(f"--secure-port={port}").startswith(f"--secure-port {port} must be between 1 and 65535")


def test_a_certificate_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.touch()
    assert refusal(f"--cert-dir={taken}") == f"cannot write a certificate to --cert-dir {str(taken)!r}: File exists"
    below = taken / "below"
    assert refusal(f"--cert-dir={below}") == f"cannot write a certificate to --cert-dir {str(below)!r}: Not a directory"


def test_a_key_without_its_certificate_is_not_overwritten(tmp_path: Path) -> None:
    key = tmp_path / "apiserver.key"
    key.write_text("mine")
    only_one = f"--cert-dir {str(tmp_path)!r} has only one of apiserver.crt and apiserver.key"
    assert refusal(f"--cert-dir={tmp_path}") == only_one
    assert key.read_text() == "mine"
