"""Sending requests and receiving responses over HTTP/1.1. Knows nothing of Kubernetes."""
