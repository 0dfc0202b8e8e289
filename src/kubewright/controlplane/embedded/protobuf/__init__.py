"""Reads the protobuf that Go clients and kubectl send for Kubernetes' own kinds; answers are always JSON.

`envelope` opens a body, `table` knows every kind and message, `message` reads one message by its table, `scalars` are
the types whose JSON differs from their message, `wire` is the encoding itself.
"""

from kubewright.controlplane.embedded.protobuf.envelope import decode_protobuf

__all__ = ["decode_protobuf"]
