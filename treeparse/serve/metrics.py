"""Counts of a server, in the text format of Prometheus."""

from collections import Counter
from collections.abc import Iterable, Mapping

SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)  # upper bounds of the histogram's buckets
TYPE = "text/plain; version=0.0.4; charset=utf-8"
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})  # of values of labels


class ServerMetrics:
    """Counts. One thread calls ``answered`` and ``left``, one thread calls ``parsed``."""

    def __init__(self, models: Iterable[str]) -> None:
        self._answers = Counter[tuple[str, int]]()
        self._times = Counter[float]()
        self._seconds = 0.0
        self._left = 0
        zeros = dict.fromkeys(models, 0)  # no thread adds a key while another reads them
        self._sentences, self._words, self._parsing = Counter(zeros), Counter(zeros), dict[str, float](zeros)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """Count an answer; for /process also its time."""
        self._answers[path, status] += 1
        if path == "/process":
            self._seconds += seconds
            self._times[next((end for end in SECONDS if seconds <= end), float("inf"))] += 1

    def left(self) -> None:
        """Count a client that left before it had the answer."""
        self._left += 1

    def parsed(self, model: str, sentences: int, words: int, seconds: float) -> None:
        """Count the sentences and words that a model has parsed, and the seconds."""
        self._sentences[model] += sentences
        self._words[model] += words
        self._parsing[model] += seconds

    def text(self, gauges: Mapping[str, tuple[str, float]]) -> str:
        """Return all counts as text, with ``gauges``: current values by name, each with its meaning."""
        answers = {f'{{path="{path}",status="{status}"}}': n for (path, status), n in self._answers.items()}
        metrics = [
            ("treeparse_requests_total", "counter", "Requests answered.", answers),
            ("treeparse_clients_left_total", "counter", "Clients that left unanswered.", {"": self._left}),
            ("treeparse_sentences_total", "counter", "Sentences parsed.", _by_model(self._sentences)),
            ("treeparse_words_total", "counter", "Words parsed.", _by_model(self._words)),
            ("treeparse_parsing_seconds_total", "counter", "Seconds of parsing.", _by_model(self._parsing)),
            ("treeparse_request_seconds", "histogram", "Seconds from request to answer.", self._histogram()),
            *((name, "gauge", meaning, {"": value}) for name, (meaning, value) in gauges.items()),
        ]
        lines: list[str] = []
        for name, kind, meaning, values in metrics:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]
            lines += [f"{name}{labels} {value}" for labels, value in values.items()]
        return "\n".join([*lines, ""])

    def _histogram(self) -> dict[str, float]:
        buckets: dict[str, float] = {}
        count = 0
        for end in (*SECONDS, float("inf")):
            count += self._times[end]
            buckets[f'_bucket{{le="{"+Inf" if end == float("inf") else end}"}}'] = count
        return {**buckets, "_sum": self._seconds, "_count": count}


def _by_model(counts: Mapping[str, float]) -> dict[str, float]:
    return {f'{{model="{model.translate(ESCAPES)}"}}': count for model, count in counts.items()}
