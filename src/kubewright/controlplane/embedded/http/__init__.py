"""HTTP: requests and responses, over sockets (ASGI, uvicorn) or within the process, and how a response is written."""
