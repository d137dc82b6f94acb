"""Counts of a server, for Prometheus."""

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # upper bounds of the histogram's buckets


class ServerMetrics:
    """Counts of requests, of parsed sentences and of the requests that wait.

    Args:
        waiting: returns the number of requests that wait for the parser, and the number of their words.
    """

    def __init__(self, waiting: Callable[[], tuple[int, int]]) -> None:
        self.registry: CollectorRegistry = CollectorRegistry()
        own: dict[str, Any] = {"namespace": "treeparse", "registry": self.registry}
        self.requests: Counter = Counter("requests", "Requests answered.", ["path", "status"], **own)
        self.seconds: Histogram = Histogram(
            "request_seconds", "Seconds of a request to /process.", buckets=SECONDS, **own
        )
        self.clients_left: Counter = Counter("clients_left", "Clients that left unanswered.", **own)
        self.sentences: Counter = Counter("sentences", "Sentences parsed.", ["model"], **own)
        self.words: Counter = Counter("words", "Words parsed.", ["model"], **own)
        self.parsing_seconds: Counter = Counter("parsing_seconds", "Seconds of parsing.", ["model"], **own)
        queue = Gauge("queue_requests", "Requests that wait for the parser.", **own)
        queue.set_function(lambda: waiting()[0])
        queue_words = Gauge("queue_words", "Words of the requests that wait for the parser.", **own)
        queue_words.set_function(lambda: waiting()[1])
