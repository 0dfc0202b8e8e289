"""`python -m kubewright_operators.wukong.simulators --kubeconfig FILE` simulates KubeVirt, CDI and NMState there."""

from kubewright import run

from . import setup

if __name__ == "__main__":
    run(setup, name="wukong-simulators")
