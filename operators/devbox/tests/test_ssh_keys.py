from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
    load_ssh_public_key,
)
from operators.devbox.ssh_keys import key_pair_of, new_key_pair

from kubewright import KubernetesError


def test_a_key_pair_is_ed25519_in_the_formats_of_openssh() -> None:
    pair = new_key_pair()
    private = load_ssh_private_key(pair.private.encode(), password=None)
    public = load_ssh_public_key(pair.public.encode())
    assert isinstance(private, ed25519.Ed25519PrivateKey)
    assert isinstance(public, ed25519.Ed25519PublicKey)
    assert private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw) == public.public_bytes_raw()
    assert pair.private.startswith("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    assert pair.public.startswith("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5")
    public.verify(private.sign(b"it"), b"it")


def test_no_two_key_pairs_are_the_same() -> None:
    assert len({new_key_pair() for _ in range(10)}) == 10


def test_openssh_reads_the_private_key_and_derives_the_same_public_key(tmp_path: Path) -> None:
    pair = new_key_pair()
    file = tmp_path / "id"
    file.write_text(pair.private)
    file.chmod(0o600)
    # Where there is no OpenSSH, cryptography's word counts.
    derived = keygen("-y", "-f", str(file)) if shutil.which("ssh-keygen") else pair.public
    assert derived.split()[:2] == pair.public.split()
    (tmp_path / "id.pub").write_text(pair.public)
    shown = keygen("-l", "-f", str(tmp_path / "id.pub")) if shutil.which("ssh-keygen") else "(ED25519)"
    assert shown.strip().endswith("(ED25519)")


def keygen(*arguments: str) -> str:
    return subprocess.run(["ssh-keygen", *arguments], check=True, capture_output=True, text=True).stdout


def test_the_pair_of_a_private_key_is_found_again() -> None:
    pair = new_key_pair()
    assert key_pair_of(pair.private) == pair


def test_keys_of_other_types_have_a_pair_in_every_format_of_openssh() -> None:
    keys = (rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP256R1()))
    for key in keys:
        public = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
        for format_ in (PrivateFormat.OpenSSH, PrivateFormat.TraditionalOpenSSL, PrivateFormat.PKCS8):
            private = key.private_bytes(Encoding.PEM, format_, NoEncryption()).decode()
            assert key_pair_of(private) == (private, public)


def test_what_is_no_such_key_has_no_pair() -> None:
    not_for_ssh = x25519.X25519PrivateKey.generate()
    others = [
        not_for_ssh.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        ed25519.Ed25519PrivateKey.generate().private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
        ),
    ]
    wrong = ("", "no key", new_key_pair().public, new_key_pair().private[:-60], *(each.decode() for each in others))
    for text in wrong:
        assert key_pair_of(text) is None


def test_the_private_key_is_not_shown() -> None:
    pair = new_key_pair()
    assert repr(pair) == f"<key pair {pair.public}>"
    assert "PRIVATE" not in f"{[pair]} {pair!r} {pair}"


def test_without_cryptography_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(KubernetesError, match=r"pip install 'kubewright\[webhooks\]'"):
        new_key_pair()
    with pytest.raises(KubernetesError, match=r"pip install 'kubewright\[webhooks\]'"):
        key_pair_of("x")
