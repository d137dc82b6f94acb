"""What a server takes from its clients, and the errors that say so."""

from dataclasses import dataclass

from treeparse.errors import TreeparseError

RETRY_AFTER = 2  # seconds after which a client that was turned away is told to come again


class RequestError(TreeparseError):
    """A request that is not done; the message is the whole answer, ``status`` that of HTTP."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status = status
        super().__init__(sentence)


@dataclass(frozen=True)
class Limits:
    """Of requests; what goes beyond them is refused, the rest is not affected.

    Attributes:
        request_bytes: of a request's body.
        request_words: of a request; of lists, the words of all their trees.
        sentence_words: of a sentence.
        trees: of a list.
        waiting: requests that wait for the parser at once.
        seconds: from when a request is read until it is parsed, most of which it may have to wait.
        client_seconds: for a client to send a request, and to take the answer.
    """

    request_bytes: int = 4 << 20
    request_words: int = 100_000
    sentence_words: int = 1000
    trees: int = 100
    waiting: int = 128
    seconds: float = 60
    client_seconds: float = 60
