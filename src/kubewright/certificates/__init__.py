"""Certificates of TLS servers: made, kept in a Secret, rotated, and trusted by the API server.

What makes certificates needs the package `cryptography`: import these modules where they are used.
"""
