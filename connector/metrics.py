"""Prometheus metrics, for this machine alone.

No label is chosen by a stranger, and none says anything about an owner: routes, tools, statuses, steps and
their outcomes come from lists in the code. `docs/deploy/observe.md` explains each.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Histogram, Info, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from connector.oauth_steps import step_of
from connector.settings import Settings, SettingsError
from store.errors import StoreError

ADDRESS = "127.0.0.1"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS", "DELETE", "PUT", "PATCH"})
OWED_SECONDS = 60
"""How long a count of owed embeddings is good: on Firestore each costs a read."""

EMBEDDER_EVENTS = frozenset({"embedder.unavailable", "embedding.still_owed"})
MODEL_EVENTS = frozenset({"vision_model.unavailable"})
DATABASE_EVENTS = frozenset(
    {
        "store.unavailable",
        "activity.not_written",
        "records.not_swept",
        "memory.use_not_noted",
        "firestore.gave_up",
        "firestore.index_missing",
        "firestore.refused",
        "firestore.failed",
    }
)


class Metrics:
    """What is counted while the server runs, in a registry of its own."""

    def __init__(self, **about: str) -> None:
        """Args: `about` names version, store and embedder."""
        self.registry = CollectorRegistry()
        Info("vademecum", "What is running", registry=self.registry).info(about)
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._requests = self._counter("http_requests", "Requests answered", "route", "method", "status")
        self._request_seconds = self._seconds("http_request", "From a request's head to its answer", "route")
        self._tools = self._counter("tool_calls", "Calls of tools", "tool", "status")
        self._tool_seconds = self._seconds("tool_call", "What calls of tools took", "tool")
        self._steps = self._counter("oauth_steps", "Steps of authorization", "step", "outcome")
        self._embedder = self._counter("embedder_failures", "Times that the embedder did not answer")
        self._model = self._counter("language_model_failures", "Times that the language model did not answer")
        self._database = self._counter("database_failures", "Times that the database did not answer")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"vademecum_{name}", text, labels, registry=self.registry)

    def _seconds(self, name: str, text: str, *labels: str) -> Histogram:
        return Histogram(f"vademecum_{name}_seconds", text, labels, buckets=SECONDS, registry=self.registry)

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Counts one answer; `route` is one of the application's, or `…`."""
        known = method if method in METHODS else "other"
        self._requests.labels(route, known, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def tool_call(self, tool: str, status: str, seconds: float) -> None:
        """Counts one call of a tool that exists."""
        self._tools.labels(tool, status).inc()
        self._tool_seconds.labels(tool).observe(seconds)

    def event(self, name: str, fields: Mapping[str, object]) -> None:
        """Counts what a log entry tells of."""
        if (step := step_of(name, fields)) is not None:
            self._steps.labels(*step).inc()
        elif name in EMBEDDER_EVENTS:
            self._embedder.inc()
        elif name in MODEL_EVENTS:
            self._model.inc()
        elif name in DATABASE_EVENTS:
            self._database.inc()

    def log_handler(self) -> logging.Handler:
        """Hands every log entry to `event`, whatever level is written."""
        return _LogCounter(self)

    def watch(self, checks: Callable[[], Mapping[str, bool]], owed: Callable[[], int]) -> None:
        """Asks for these whenever somebody looks."""
        self.registry.register(_State(checks, owed))

    @contextlib.contextmanager
    def served(self, port: int) -> Iterator[None]:
        """`/metrics` on this machine's loopback, from threads of its own.

        Raises:
            SettingsError: the port is taken.
        """
        try:
            server, thread = start_http_server(port, ADDRESS, self.registry)
        except OSError as error:
            raise SettingsError([f"VADEMECUM_METRICS_PORT: {error}"]) from error
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def of(
    settings: Settings, version: str, checks: Callable[[], Mapping[str, bool]], owed: Callable[[], int]
) -> Metrics:
    """Those of one installation, whose readiness and owed embeddings are asked for when somebody looks."""
    metrics = Metrics(version=version, store=settings.store, embedder=settings.embedder)
    metrics.watch(checks, owed)
    return metrics


class _LogCounter(logging.Handler):
    """From INFO on."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__(logging.INFO)
        self._metrics = metrics

    def emit(self, record: logging.LogRecord) -> None:
        """Counts the entry."""
        self._metrics.event(record.getMessage(), record.__dict__)


class _State(Collector):
    """How things are at the moment."""

    def __init__(self, checks: Callable[[], Mapping[str, bool]], owed: Callable[[], int]) -> None:
        self._checks = checks
        self._owed = owed
        self._counted: tuple[float, int] | None = None
        self._lock = Lock()

    def collect(self) -> Iterator[Metric]:
        """Readiness by check, and how many memories wait for their embedding."""
        ready = GaugeMetricFamily("vademecum_ready", "1 when the check passes", labels=["check"])
        for check, passes in self._checks().items():
            ready.add_metric([check], float(passes))
        yield ready
        with contextlib.suppress(StoreError):
            owed = self._count()
            yield GaugeMetricFamily("vademecum_embeddings_owed", "Memories without a vector", value=owed)

    def _count(self) -> int:
        with self._lock:
            if self._counted is None or time.monotonic() - self._counted[0] > OWED_SECONDS:
                self._counted = (time.monotonic(), self._owed())
            return self._counted[1]
