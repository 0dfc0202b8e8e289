"""`python -m kubewright`, the same as the command `kubewright`."""

from kubewright.cli.main import main

if __name__ == "__main__":
    main()
