"""Writes how Kubernetes lays out its kinds, in protobuf and in Go, and bodies with what its server makes of them."""
