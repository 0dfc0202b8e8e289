"""What an object is: models, kinds, metadata, and the way between JSON and Python types.

Kubernetes' own kinds are in `kubewright.api.<group>.<version>`, for example `kubewright.api.apps.v1.Deployment`.
"""

from kubewright.api.codec import decode as decode
from kubewright.api.codec import encode as encode
from kubewright.api.codec import from_json as from_json
from kubewright.api.codec import to_json as to_json
from kubewright.api.dynamic import Dynamic as Dynamic
from kubewright.api.dynamic import PartialObject as PartialObject
from kubewright.api.dynamic import metadata_only as metadata_only
from kubewright.api.errors import DecodeError as DecodeError
from kubewright.api.errors import KubernetesError as KubernetesError
from kubewright.api.int_or_string import IntOrString as IntOrString
from kubewright.api.kinds import GroupVersionKind as GroupVersionKind
from kubewright.api.kinds import ObjectKey as ObjectKey
from kubewright.api.markers import JSONInput as JSONInput
from kubewright.api.markers import JSONValue as JSONValue
from kubewright.api.meta import Condition as Condition
from kubewright.api.meta import LabelSelector as LabelSelector
from kubewright.api.meta import ListMeta as ListMeta
from kubewright.api.meta import ObjectMeta as ObjectMeta
from kubewright.api.meta import OwnerReference as OwnerReference
from kubewright.api.model import Model as Model
from kubewright.api.partials import partial as partial
from kubewright.api.quantity import Quantity as Quantity
from kubewright.api.resources import Column as Column
from kubewright.api.resources import Object as Object
from kubewright.api.resources import Resource as Resource
from kubewright.api.resources import ResourceInfo as ResourceInfo
from kubewright.api.resources import Scale as Scale
from kubewright.api.resources import resource as resource
from kubewright.api.resources import resource_info as resource_info
from kubewright.api.scheme import Scheme as Scheme
from kubewright.api.time import MicroTime as MicroTime
from kubewright.api.time import Time as Time
from kubewright.api.time import now as now
