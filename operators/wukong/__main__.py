"""`python -m kubewright_operators.wukong` runs the operator; `--help` lists its flags."""

from kubewright import run

from .program import Options, setup

if __name__ == "__main__":
    run(setup, name="wukong", options=Options)
