"""A user of a control plane, and the credentials with which a client acts as that user."""

from __future__ import annotations

import base64
import json
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class User:
    """A user known by a client certificate. The private key is in no repr."""

    name: str
    groups: tuple[str, ...]
    server: str
    ca_certificate: str = field(repr=False)
    certificate: str = field(repr=False)
    key: str = field(repr=False)

    @property
    def kubeconfig(self) -> str:
        """A kubeconfig with everything inline. It holds the private key.

        It is JSON, which is YAML, too, and read without the time that a parser of YAML takes to be ready.
        """
        context = f"{self.name}@kubewright"
        cluster = {"server": self.server, "certificate-authority-data": _base64(self.ca_certificate)}
        user = {"client-certificate-data": _base64(self.certificate), "client-key-data": _base64(self.key)}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "kubewright", "cluster": cluster}],
            "users": [{"name": self.name, "user": user}],
            "contexts": [{"name": context, "context": {"cluster": "kubewright", "user": self.name}}],
            "current-context": context,
        }
        return json.dumps(document, indent=2) + "\n"

    def ssl_context(self) -> ssl.SSLContext:
        """A context that trusts only this control plane's authority and presents this user's certificate."""
        context = ssl.create_default_context(cadata=self.ca_certificate)
        # OpenSSL loads a certificate chain only from a file; this one is private and removed at once.
        with tempfile.NamedTemporaryFile("w", prefix="kubewright-", suffix=".pem") as pem:
            pem.write(self.certificate + self.key)
            pem.flush()
            context.load_cert_chain(Path(pem.name))
        return context


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")
