"""Where the server is and who we are: kubeconfig, in-cluster, credential plugins, certificates."""

from kubewright.client.config.config import Config as Config
