"""The API server decides who may read an endpoint: TokenReview identifies the user, SubjectAccessReview authorizes it.

As controller-runtime's `filters.WithAuthenticationAndAuthorization`: a client sends its bearer token and needs a role
with the verb `get` on the nonResourceURL, such as `/metrics`. The operator itself needs the ClusterRole
`system:auth-delegator`. Responses of the API server are cached for a short time.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Generic, TypeVar

from kubewright.api.errors import KubernetesError
from kubewright.client import Client
from kubewright.manager.permissions import Permission
from kubewright.manager.serving import EndpointRequest, EndpointResponse, Handler

if TYPE_CHECKING:
    from kubewright.api.authentication.v1 import UserInfo

TOKEN_TTL, ALLOWED_TTL, DENIED_TTL = 60.0, 300.0, 30.0
"""Seconds for which reviews are cached: the user of a token, and whether a user may read."""
REVIEW_TIMEOUT = 10.0

NEEDS = (
    Permission("authentication.k8s.io/tokenreviews", "create"),
    Permission("authorization.k8s.io/subjectaccessreviews", "create"),
)
"""The permissions that the operator itself needs."""

_MAX_REMEMBERED = 1024
_V = TypeVar("_V")
_log = logging.getLogger(__name__)


class DelegatedAccess:
    """Serves only users that the API server permits: 401 without a valid token, 403 without the permission."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._users = _Remembered["UserInfo | None"]()
        self._decisions = _Remembered[bool]()

    def protect(self, handler: Handler) -> Callable[[EndpointRequest], Awaitable[EndpointResponse]]:
        """The handler, restricted to users that may read its path."""

        async def protected(request: EndpointRequest) -> EndpointResponse:
            if refused := await self._refused(request):
                return refused
            answer = handler(request)
            return answer if isinstance(answer, EndpointResponse) else await answer

        return protected

    async def _refused(self, request: EndpointRequest) -> EndpointResponse | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return EndpointResponse(401, body=b"Unauthorized\n")
        try:
            async with asyncio.timeout(REVIEW_TIMEOUT):
                user = await self._user(token)
                if user is None:
                    return EndpointResponse(401, body=b"Unauthorized\n")
                is_allowed = await self._is_allowed(user, request)
        except (KubernetesError, TimeoutError) as error:
            _log.error("who may read %s could not be decided: %s", request.path, str(error) or "no response in time")
            return EndpointResponse(500, body=b"Authentication or authorization failed\n")
        if not is_allowed:
            return EndpointResponse(403, body=f"Authorization denied for user {user.username}\n".encode())
        return None

    async def _user(self, token: str) -> UserInfo | None:
        from kubewright.api.authentication.v1 import TokenReview, TokenReviewSpec  # few programs need these kinds

        # Tokens themselves are not kept.
        key = hashlib.sha256(token.encode()).digest()
        if key in self._users:
            return self._users[key]
        review = await self._client.create(TokenReview(spec=TokenReviewSpec(token=token)))
        user = review.status.user if review.status.authenticated else None
        return self._users.remember(key, user, TOKEN_TTL if user is not None else DENIED_TTL)

    async def _is_allowed(self, user: UserInfo, request: EndpointRequest) -> bool:
        from kubewright.api.authorization.v1 import NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec

        verb = request.method.lower()
        key = (user.username, user.uid, tuple(user.groups), str(sorted(user.extra.items())), verb, request.path)
        if key in self._decisions:
            return self._decisions[key]
        spec = SubjectAccessReviewSpec(
            user=user.username,
            uid=user.uid,
            groups=user.groups,
            extra=user.extra,
            non_resource_attributes=NonResourceAttributes(path=request.path, verb=verb),
        )
        review = await self._client.create(SubjectAccessReview(spec=spec))
        is_allowed = review.status.allowed
        return self._decisions.remember(key, is_allowed, ALLOWED_TTL if is_allowed else DENIED_TTL)


class _Remembered(Generic[_V]):
    """A cache with a limited number of values and a time to live."""

    def __init__(self) -> None:
        self._values: OrderedDict[Hashable, tuple[float, _V]] = OrderedDict()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values and asyncio.get_running_loop().time() < self._values[key][0]

    def __getitem__(self, key: Hashable) -> _V:
        return self._values[key][1]

    def remember(self, key: Hashable, value: _V, seconds: float) -> _V:
        self._values[key] = asyncio.get_running_loop().time() + seconds, value
        self._values.move_to_end(key)
        if len(self._values) > _MAX_REMEMBERED:
            self._values.popitem(last=False)
        return value
