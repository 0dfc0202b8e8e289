"""From an operator to what is deployed of it: objects, kustomize files, one manifest, and a Dockerfile; see
`docs/manifests.md`.
"""

from kubewright.deployment.declared import with_setup
from kubewright.deployment.dockerfile import dockerfile_of
from kubewright.deployment.files import files_of, install_yaml
from kubewright.deployment.layout import objects_of
from kubewright.deployment.operator import Operator
from kubewright.deployment.request_cleanup import RequestCleanup

__all__ = ["Operator", "RequestCleanup", "dockerfile_of", "files_of", "install_yaml", "objects_of", "with_setup"]
