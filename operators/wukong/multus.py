"""The kind of Multus: a network that pods can be attached to."""

from __future__ import annotations

from kubewright import Resource, resource
from kubewright.api.model import BuiltIn

RESOURCE_NAME = "k8s.v1.cni.cncf.io/resourceName"
"""The annotation with the device pool of an attachment."""


class NetworkAttachmentDefinitionSpec(BuiltIn):
    """The configuration of a CNI plugin, in JSON."""

    config: str = ""


@resource(
    "k8s.cni.cncf.io/v1",
    plural="network-attachment-definitions",
    singular="network-attachment-definition",
    short_names=["net-attach-def"],
)
class NetworkAttachmentDefinition(Resource[NetworkAttachmentDefinitionSpec, None]):
    """A network that pods can be attached to."""
