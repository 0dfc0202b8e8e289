from __future__ import annotations

from pathlib import Path

import pytest

from kubewright.controlplane import ControlPlaneError
from kubewright.controlplane.envtest.etcd import _serve
from kubewright.controlplane.envtest.state import load_state


@pytest.mark.parametrize(
    "url", ["127.0.0.1:2379", "https://127.0.0.1:1", "http://127.0.0.1:x", "http://[::1", "http://"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ControlPlaneError, match="expected http://HOST:PORT"):
        load_state(url)


def test_etcd_refuses_to_listen_on_a_port_that_is_none(tmp_path: Path) -> None:
    for url in ("http://127.0.0.1:x", "http://127.0.0.1:65536", "http://[::1"):
        with pytest.raises(SystemExit, match="expected http://HOST:PORT"):
            _serve([url], tmp_path / "state")
