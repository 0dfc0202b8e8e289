"""The arguments of a manager, checked for the mistakes that a type checker would find."""

from __future__ import annotations

from collections.abc import Iterable

from kubewright.cache import CachedClient
from kubewright.client import Client
from kubewright.client.arguments import check_namespace
from kubewright.controller.defaults import ControllerDefaults
from kubewright.manager.leader_election import LeaderElection
from kubewright.manager.permissions import Permission


def check_arguments(client: object, namespaces: object, election: object, grace: object, controllers: object) -> None:
    """Raise a TypeError or ValueError that names the fix."""
    if not isinstance(client, Client):
        raise TypeError(
            f"Manager({client!r}): expected a client: async with Client() as client: manager = Manager(client)"
        )
    if isinstance(client, CachedClient):
        raise TypeError("Manager(client): this client reads from a cache; give the one that it was made of")
    if isinstance(namespaces, str):
        raise TypeError(f'Manager(namespaces="{namespaces}"): expected a list of names, ["{namespaces}"]')
    if not isinstance(namespaces, Iterable):
        raise TypeError(f"Manager(namespaces={namespaces!r}): expected a list of names")
    for namespace in namespaces:
        check_namespace(namespace, "namespaces")
    if election is not None and not isinstance(election, LeaderElection):
        raise TypeError(f'Manager(election={election!r}): expected LeaderElection(client, "name-of-the-lease")')
    if not isinstance(grace, int | float | None) or (grace is not None and grace < 0):
        raise ValueError(f"Manager(grace={grace!r}): expected a number of seconds, or None for no limit")
    if controllers is not None and not isinstance(controllers, ControllerDefaults):
        raise TypeError(f"Manager(controllers={controllers!r}): expected ControllerDefaults(workers=4)")


def checked_permissions(given: object) -> list[Permission]:
    """The permissions as a list; a TypeError for anything else."""
    listed = list(given) if isinstance(given, Iterable) else [None]
    permissions = [each for each in listed if isinstance(each, Permission)]
    if len(permissions) < len(listed):
        raise TypeError(f'permissions={given!r}: expected a list such as [Permission(Secret, "get", "list")]')
    return permissions
