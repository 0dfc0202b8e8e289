"""Moving requests and answers over HTTP/1.1. Knows nothing of Kubernetes."""
