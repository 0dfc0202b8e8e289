"""Writes how Kubernetes' kinds are laid out in protobuf, and bodies with what the real server makes of them."""
