"""What the operator can be told by flags and by environment variables."""

from __future__ import annotations

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

    def __post_init__(self) -> None:
        if self.api_server_url:
            try:
                self.api_server_url = parse_server(self.api_server_url)
            except ValueError as error:
                raise ValueError(f"--api-server-url: {error}") from None
