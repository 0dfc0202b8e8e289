"""`python -m kubewright_operators.builtins` runs the operator; `--help` lists its flags."""

from kubewright import run

from .program import setup

if __name__ == "__main__":
    run(setup, name="builtins")
