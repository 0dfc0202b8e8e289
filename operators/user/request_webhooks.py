"""What the API server asks about requests: who has created them, and whether there is an open one already.

Whether a user may request something is not asked here: see `request_policy.py`.
"""

from __future__ import annotations

from kubewright import CachedClient, Denied, Review, defaults, validates
from kubewright.webhook import AdmissionWebhook
from kubewright.webhook.admission import ValidatesFunction

from .names import CREATOR, OWNER, SYSTEM_NAMESPACE
from .request_types import Deleterequest, Operationrequest, is_open


@defaults(Operationrequest)
def stamp_operation(review: Review[Operationrequest]) -> None:
    """A request says who has created it, whatever the client says, and for whom it is."""
    _stamp(review.object, review)


@defaults(Deleterequest)
def stamp_deletion(review: Review[Deleterequest]) -> None:
    """The same of requests to delete a User."""
    _stamp(review.object, review)


def _stamp(request: Operationrequest | Deleterequest, review: Review[Operationrequest] | Review[Deleterequest]) -> None:
    request.metadata.labels[OWNER] = request.spec.user
    if review.operation == "CREATE":
        request.metadata.annotations[CREATOR] = review.user.username or ""


def one_open_request(client: CachedClient) -> AdmissionWebhook[ValidatesFunction[Operationrequest]]:
    """Denies a second open request for a user of a workspace.

    Two that are created at the same time may both pass: then one waits for the other.
    """

    @validates(Operationrequest, on=["CREATE"])
    async def check_operation(review: Review[Operationrequest]) -> None:
        new, namespace = review.object, review.request.namespace
        if namespace != SYSTEM_NAMESPACE:
            review.warn(f"nothing will come of it: only requests in the namespace {SYSTEM_NAMESPACE} are carried out")
            return
        for other in await client.list(Operationrequest, namespace=namespace, fields={"spec.user": new.spec.user}):
            if other.spec.namespace == new.spec.namespace and is_open(other):
                raise Denied(
                    f"the Operationrequest {other.metadata.name} for {new.spec.user} in {new.spec.namespace} is "
                    f"{other.status.phase}: wait until it is finished, or delete it",
                    code=409,
                    reason="Conflict",
                )

    return check_operation
