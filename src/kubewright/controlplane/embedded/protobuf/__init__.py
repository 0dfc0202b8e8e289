"""Protobuf, which Go clients and kubectl prefer for Kubernetes' own kinds.

`envelope` opens a body, `readers` has what reads each message, `message` reads one by its table; `encoding` makes a
body of JSON, `writers` has what writes each message. Both go by `layout`, which knows every kind and message.
`scalars` and `message_forms` are the types whose JSON differs from their message, `wire` is the encoding itself.
"""

from kubewright.controlplane.embedded.protobuf.envelope import decode_protobuf

__all__ = ["decode_protobuf"]
