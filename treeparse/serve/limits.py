"""Limits of requests, and the answer to a refused request."""

from dataclasses import dataclass

from aiohttp import web

RETRY_AFTER = 2  # seconds after which a refused client should retry


class RequestError(web.HTTPException):
    """The answer to a refused request: a sentence, with an HTTP status."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status_code = status
        super().__init__(text=f"{sentence}\n", headers={"Retry-After": str(RETRY_AFTER)} if status == 503 else None)


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
        client_seconds: seconds for a client to send a request.
    """

    request_bytes: int = 4 << 20
    request_words: int = 100_000
    sentence_words: int = 1000
    trees: int = 100
    waiting: int = 128
    seconds: float = 60
    client_seconds: float = 60
