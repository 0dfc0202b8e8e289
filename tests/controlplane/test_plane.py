from __future__ import annotations

import subprocess
import sys


def test_a_missing_extra_is_named_with_the_command_that_installs_it() -> None:
    script = (
        "import sys\n"
        "sys.modules['cryptography'] = None\n"
        "from kubewright.controlplane import ControlPlane, ControlPlaneError\n"
        "try:\n"
        "    ControlPlane.real()\n"
        "except ControlPlaneError as error:\n"
        "    print(error)\n"
    )

    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout

    assert said == ("a real control plane needs the package cryptography: pip install 'kubewright[controlplane]'\n")
