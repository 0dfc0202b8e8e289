"""What is stored, between two API servers with the same etcd.

An API server of ours has its objects in memory. When it stops it leaves them with the program that stands for etcd,
and the next one begins with them: the same objects, uids and resourceVersions. One that is killed leaves nothing.
"""

from __future__ import annotations

import http.client
import time
from urllib.parse import urlsplit

from kubewright.controlplane.embedded.storage.saved import SavedStore
from kubewright.controlplane.envtest.etcd import STATE_PATH
from kubewright.controlplane.errors import ControlPlaneError

_PATIENCE = 10.0
_INTERVAL = 0.05


def load_state(etcd: str) -> SavedStore | None:
    """What the last API server has left; None when there was none, or when that etcd is another program.

    Waits until it answers. Raises ControlPlaneError when it does not within ten seconds.
    """
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            status, body = _request(etcd, "GET")
        except OSError as error:
            if time.monotonic() > deadline:
                raise ControlPlaneError(f"cannot reach etcd at {etcd}: {error.strerror or error}") from None
            time.sleep(_INTERVAL)
        else:
            return SavedStore.decode(body) if status == 200 else None


def save_state(etcd: str, saved: SavedStore) -> None:
    """Leave the state with etcd. Raises ControlPlaneError when that has ended before, or is another program."""
    try:
        status, _ = _request(etcd, "PUT", saved.encode())
    except OSError as error:
        raise ControlPlaneError(f"what was stored is lost: cannot reach etcd at {etcd}: {error}") from None
    if status != 204:
        raise ControlPlaneError(f"what was stored is lost: the etcd at {etcd} is not the one of kubewright")


def _request(etcd: str, method: str, body: bytes | None = None) -> tuple[int, bytes]:
    try:
        address = urlsplit(etcd)
        scheme, host, port = address.scheme, address.hostname, address.port or 2379
    except ValueError:  # a port that is none, an unfinished IPv6 address
        scheme, host, port = "", None, 0
    if scheme != "http" or not host:
        raise ControlPlaneError(f"cannot reach etcd at {etcd!r}: expected http://HOST:PORT")
    connection = http.client.HTTPConnection(host, port, timeout=_PATIENCE)
    try:
        connection.request(method, STATE_PATH, body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except http.client.HTTPException as error:
        raise ControlPlaneError(f"cannot reach etcd at {etcd}: {error!r}") from None
    finally:
        connection.close()
