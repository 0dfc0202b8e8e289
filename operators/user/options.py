"""The options of the operator: flags and environment variables."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from kubewright import Meta, Model
from kubewright.client.config.address import parse_server


class Options(Model):
    """How users and requests are treated."""

    api_server_url: Annotated[
        str, Meta(description="The URL of the API server in kubeconfigs, unless it is the one that the operator uses")
    ] = ""
    privileged_user: Annotated[
        list[str], Meta(description="A user whose workspace has no Pod Security Standards, such as admin")
    ] = []
    operation_req_retention_time: Annotated[
        timedelta, Meta(description="How long a finished Operationrequest is kept")
    ] = timedelta(hours=1)
    operation_req_expiration_time: Annotated[
        timedelta, Meta(description="How long after its creation an Operationrequest that is not finished fails")
    ] = timedelta(minutes=10)
    delete_req_retention_time: Annotated[timedelta, Meta(description="How long a finished Deleterequest is kept")] = (
        timedelta(hours=1)
    )
    delete_req_expiration_time: Annotated[
        timedelta, Meta(description="How long after its creation a Deleterequest that is not finished fails")
    ] = timedelta(minutes=10)
    request_retry_time: Annotated[
        timedelta, Meta(description="Until a request is tried again after an error that may pass")
    ] = timedelta(seconds=30)
    request_grace_time: Annotated[
        timedelta, Meta(description="How long a request waits for a User or workspace that does not exist (yet)")
    ] = timedelta(seconds=30)
    request_workers: Annotated[int, Meta(ge=1, description="How many requests of a kind are carried out at a time")] = 5
    request_min_retry_delay: Annotated[
        timedelta, Meta(description="The first back-off of a request after an unexpected error")
    ] = timedelta(milliseconds=5)
    request_max_retry_delay: Annotated[
        timedelta, Meta(description="The longest back-off of a request after unexpected errors")
    ] = timedelta(seconds=1000)
    guard_requests: Annotated[
        bool,
        Meta(description="Carry out requests only while the policy that checks the rights of creators is there"),
    ] = True
    deletion_gate: Annotated[
        bool, Meta(description="Delete only Users that are labelled for it by a Deleterequest")
    ] = True
    audit_file: Annotated[
        Path | None, Meta(description="A file for audit records of requests, as lines of JSON, instead of the log")
    ] = None

    def __post_init__(self) -> None:
        file = self.audit_file
        if file is not None and (file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK)):
            raise ValueError(f'--audit-file: "{file}" cannot be written: expected a file in a directory that exists')
        if self.api_server_url:
            try:
                self.api_server_url = parse_server(self.api_server_url)
            except ValueError as error:
                raise ValueError(f"--api-server-url: {error}") from None
        for name in (
            "operation_req_expiration_time",
            "delete_req_expiration_time",
            "request_retry_time",
            "request_min_retry_delay",
        ):
            if not getattr(self, name):
                raise ValueError(f"--{name.replace('_', '-')}: expected more than 0")
        if self.request_max_retry_delay < self.request_min_retry_delay:
            raise ValueError("--request-max-retry-delay: expected at least --request-min-retry-delay")
