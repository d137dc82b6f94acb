"""Limits of requests, and the error that refuses a request."""

from dataclasses import dataclass

from treeparse.errors import TreeparseError

RETRY_AFTER = 2  # seconds after which a refused client should retry


class RequestError(TreeparseError):
    """A refused request; the message is the body of the answer, ``status`` its HTTP status."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status = status
        super().__init__(sentence)


@dataclass(frozen=True)
class Limits:
    """Limits of requests; a request beyond them is refused.

    Attributes:
        request_bytes: bytes in the body of a request.
        request_words: words in a request; a list of trees counts its words once for each tree.
        sentence_words: words in a sentence.
        trees: trees in a list.
        waiting: requests that wait for the parser at the same time.
        seconds: seconds for a request to wait and be parsed, after it was read.
        client_seconds: seconds for a client to send a request, and to receive the answer.
    """

    request_bytes: int = 4 << 20
    request_words: int = 100_000
    sentence_words: int = 1000
    trees: int = 100
    waiting: int = 128
    seconds: float = 60
    client_seconds: float = 60
