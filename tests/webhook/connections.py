"""What an API server does on the wire, without one."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

from kubewright.controlplane.certificates import CertificateAuthority, KeyPair


def trusting(authority: CertificateAuthority, pair: KeyPair | None = None, file: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority.certificate)
    if pair is not None and file is not None:
        file.write_text(pair.certificate + pair.key)
        context.load_cert_chain(file)
    return context


async def post(
    port: int, tls: ssl.SSLContext, path: str, body: bytes, *, length: int | None = None
) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    try:
        head = f"POST {path}?timeout=10s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
        writer.write(f"{head}Content-Length: {len(body) if length is None else length}\r\n\r\n".encode() + body)
        answered, _, content = (await reader.read()).partition(b"\r\n\r\n")
        return int(answered.split()[1]) if answered else 0, content
    finally:
        writer.close()
