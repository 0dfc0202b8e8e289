"""A live local copy of the objects a program watches."""

from kubewright.cache.cache import Cache as Cache
from kubewright.cache.cache import WatchHandle as WatchHandle
from kubewright.cache.client import CachedClient as CachedClient
from kubewright.cache.client import Consistency as Consistency
from kubewright.cache.entry import CacheEntry as CacheEntry
from kubewright.cache.write_origin import WriteOrigin as WriteOrigin
