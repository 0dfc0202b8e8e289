"""How long requests to the API server take, as client-go measures it."""

from __future__ import annotations

from kubewright.client.request_observer import RequestAttempt
from kubewright.controller.statistics import HistogramCounts

# Those of client-go's rest_client_request_duration_seconds.
BOUNDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class RequestDurations:
    """An observer of requests: durations by verb and host. A watch counts until its first byte."""

    def __init__(self) -> None:
        self.by_verb_and_host: dict[tuple[str, str], HistogramCounts] = {}

    def __call__(self, attempt: RequestAttempt) -> None:
        """Count one attempt."""
        key = attempt.method, attempt.host
        histogram = self.by_verb_and_host.get(key)
        if histogram is None:
            histogram = self.by_verb_and_host[key] = HistogramCounts(BOUNDS)
        histogram.observe(attempt.seconds)
