"""`python -m kubewright_operators.devbox` runs the operator; `--help` lists its flags."""

from kubewright import run

from .options import Options
from .program import NAME, devbox_manager, setup

if __name__ == "__main__":
    run(setup, name=NAME, options=Options, manager=devbox_manager)
