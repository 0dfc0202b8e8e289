"""The server's address and our identity: kubeconfig, in-cluster, credential plugins, certificates."""

from kubewright.client.config.config import Config as Config
