"""What the port does with connections."""

from __future__ import annotations

import socket
import ssl

from kubewright.controlplane.embedded.asgi import Application
from kubewright.controlplane.embedded.assembly import assemble
from kubewright.controlplane.embedded.serving import Serving


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_headers() -> None:
    """Headers and body are two packets. Held back until the first is acknowledged, the second comes 40 ms later."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving = Serving(Application(assemble().server), tls, "127.0.0.1", 0)
    listener = serving._socket
    with listener, socket.create_connection(("127.0.0.1", serving.port)):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
