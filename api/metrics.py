"""Figures for operators: counts and times by route and kind, never by what a user wrote or an id (INV-9)."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)


class Metrics:
    """The figures of one application. Each has a registry of its own, so that tests can have several."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Counter(
            "runhost_http_requests", "Requests answered.", ["method", "route", "status"], registry=registry
        )
        # Streams are left out: their time says how long somebody watched.
        self._seconds = Histogram(
            "runhost_http_request_seconds", "Time to answer.", ["method", "route"], buckets=_SECONDS, registry=registry
        )
        self.events = Counter("runhost_events", "Events taken in.", ["disposition"], registry=registry)
        self.starts = Counter(
            "runhost_run_starts",
            "Accepted runs, by whether their workflow started at once.",
            ["outcome"],
            registry=registry,
        )
        self.readers = Gauge("runhost_stream_readers", "Readers that follow a run live.", registry=registry)
        self.rows = Counter("runhost_stream_rows", "Ledger rows read for live readers.", registry=registry)
        self.cut = Counter("runhost_stream_readers_cut", "Readers cut off for being too slow.", registry=registry)

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one request; ``route`` is its template."""
        self._requests.labels(method, route, status).inc()
        if not route.endswith("/stream"):
            self._seconds.labels(method, route).observe(seconds)

    def exposition(self) -> bytes:
        """Return all figures in the text format of Prometheus."""
        return generate_latest(self._registry)
