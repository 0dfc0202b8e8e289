"""What both sides of the HTTP benchmark read: certificates, a 2 KB object to PUT, a 1.5 KB watch line."""

from __future__ import annotations

import datetime
import ipaddress
import json
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def write(directory: Path) -> None:
    """Put everything that the peers read into `directory`."""
    _certificates(directory)
    (directory / "put.json").write_bytes(_object(2048))
    line = b'{"type":"MODIFIED","object":' + _object(1500 - len('{"type":"MODIFIED","object":}\n')) + b"}\n"
    (directory / "watch.json").write_bytes(line)


def _object(size: int) -> bytes:
    settings: dict[str, str] = {}
    content = {
        "apiVersion": "apps.example.com/v1",
        "kind": "Widget",
        "metadata": {
            "name": "widget-0042",
            "namespace": "default",
            "uid": "2f0e2a51-9d0b-4d8a-b0d9-5f2f6f3d3c11",
            "resourceVersion": "184467",
            "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "widget", "tier": "backend", "app.kubernetes.io/managed-by": "kubewright"},
            "ownerReferences": [
                {
                    "apiVersion": "apps.example.com/v1",
                    "kind": "WidgetSet",
                    "name": "widgets",
                    "uid": "7b7e62d2-6f0b-4b39-a4f7-1c3d3b2f8e21",
                    "controller": True,
                }
            ],
        },
        "spec": {"replicas": 3, "image": "registry.example.com/widget:1.2.3", "settings": settings},
        "status": {"readyReplicas": 3, "conditions": [{"type": "Ready", "status": "True", "reason": "AsExpected"}]},
    }
    # Many small values, as objects have them; the last one takes what is left.
    while size - len(_encode(content)) > 80:
        settings[f"setting-{len(settings):03}"] = "value of this setting"
    settings["rest"] = ""
    settings["rest"] = "x" * (size - len(_encode(content)))
    return _encode(content)


def _encode(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


def _certificates(directory: Path) -> None:
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "bench-ca")])
    ca = _builder(ca_name, ca_name, ca_key.public_key(), ca=True).sign(ca_key, hashes.SHA256())
    (directory / "ca.pem").write_bytes(ca.public_bytes(serialization.Encoding.PEM))
    for name in ("server", "client"):
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        certificate = _builder(subject, ca_name, key.public_key(), ca=False).add_extension(names, critical=False)
        signed = certificate.sign(ca_key, hashes.SHA256())
        (directory / f"{name}.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        (directory / f"{name}-key.pem").write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, ca: bool
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    )
