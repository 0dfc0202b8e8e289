"""A live local view of the objects a program watches."""

from kubewright.cache.cache import Cache, CacheOptions, WatchHandle
from kubewright.cache.client import CachedClient, Consistency
from kubewright.cache.entry import CacheEntry
from kubewright.cache.write_origin import WriteOrigin

__all__ = [
    "Cache",
    "CacheEntry",
    "CacheOptions",
    "CachedClient",
    "Consistency",
    "WatchHandle",
    "WriteOrigin",
]
