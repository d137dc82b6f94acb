"""The thread that parses what waits."""

import logging
import threading
import time
from collections.abc import Mapping, Sequence

from treeparse.data.parses import Parse
from treeparse.model import Ensemble, Parser
from treeparse.sentence import Sentence
from treeparse.serve.asked import Asked
from treeparse.serve.sentences import words_alone
from treeparse.serve.tally import Tally
from treeparse.serve.waiting import Job, Share, Waiting

LOG = logging.getLogger(__name__)
BATCH_WORDS = 5000  # parsed at once, as in predict


class Worker:
    """Parses what waits, in one thread, until ``waiting`` is closed and empty."""

    def __init__(self, models: Mapping[str, Parser | Ensemble], waiting: Waiting, tally: Tally) -> None:
        self._models, self._waiting, self._tally = models, waiting, tally
        self._thread = threading.Thread(target=self._work, name="parser", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def is_alive(self) -> bool:
        """Whether it has begun and not ended."""
        return self._thread.is_alive()

    def join(self) -> None:
        """Wait for its end."""
        self._thread.join()

    def _work(self) -> None:
        while shares := self._waiting.take():
            for job in self._parse(shares):
                self._waiting.put_back(job)

    def _parse(self, shares: Sequence[Share]) -> list[Job]:
        """Parse the shares, which ask the same, and give the jobs of which more is left."""
        asked = shares[0].job.asked
        given = [share.job.sentences[len(share.job.lists) : share.stop] for share in shares]
        words = [words_alone(sentence) for sentences in given for sentence in sentences]
        places = [place for share in shares for place in range(len(share.job.lists), share.stop)]
        started = time.perf_counter()
        try:
            lists = trees_of(self._models[asked.model], asked, words, places)
        except Exception as error:
            if len(shares) > 1:  # only the request that is to blame is to fail
                return [job for share in shares for job in self._parse([share])]
            LOG.exception("A request could not be parsed.")
            shares[0].job.fail(error)
            return []
        self._tally.parsed(asked.model, len(words), sum(map(len, words)), time.perf_counter() - started)
        found = iter(lists)
        return [
            share.job
            for share, sentences in zip(shares, given, strict=True)
            if share.job.add([next(found) for _ in sentences])
        ]


def trees_of(
    model: Parser | Ensemble, asked: Asked, sentences: Sequence[Sentence], places: Sequence[int]
) -> list[list[Parse]]:
    """The trees of sentences that stand at these places of their requests."""
    probabilities = asked.probabilities
    if asked.trees == "kbest":
        return model.kbest(sentences, asked.k, batch_words=BATCH_WORDS, probabilities=probabilities)
    if asked.trees == "sample":
        options = {"seed": asked.seed, "first": places, "batch_words": BATCH_WORDS}
        return model.sample(sentences, asked.k, probabilities=probabilities, **options)
    return [[parse] for parse in model.parse(sentences, batch_words=BATCH_WORDS, probabilities=probabilities)]
