"""The parameters of a request: from its query, and from a body that is urlencoded or multipart/form-data."""

import email.message
import email.parser
import email.utils
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

from treeparse.serve.limits import RequestError

URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
PLAIN_ENCODINGS = ("7bit", "8bit", "binary")

Pairs = Iterator[tuple[bytes, bytes]]


def parameters(query: bytes, body: bytes = b"", content_type: str = "") -> dict[str, bytes]:
    """Return the parameters by name; values are bytes, so that errors can name the byte that is not UTF-8.

    Args:
        query: the query of the URL, urlencoded.
        body: the body of the request, possibly empty.
        content_type: the value of the header Content-Type.

    Raises:
        RequestError: the body is faulty or has another content type, or a name is repeated or is not UTF-8.
    """
    values: dict[str, bytes] = {}
    for name, value in (*_urlencoded(query), *(_body_pairs(body, content_type) if body else ())):
        key = utf8_text(name, "The name of a parameter")
        if key in values:
            raise RequestError(400, f"The parameter {key!r} is given twice: give it once.")
        values[key] = value
    return values


def utf8_text(value: bytes, subject: str) -> str:
    """Return bytes of UTF-8 as text; raise with the ``subject``, the name of the bytes, if they are not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise RequestError(400, f"{subject} is not valid UTF-8 (byte {error.start + 1}).") from error


def _body_pairs(body: bytes, content_type: str) -> Pairs:
    header = email.message.Message()
    header["content-type"] = content_type
    form = header.get_content_type() if content_type else "none"
    if form == URLENCODED:
        return _urlencoded(body)
    if form != MULTIPART:
        raise RequestError(400, f"The content type of a body must be {URLENCODED} or {MULTIPART}, got {form}.")
    boundary = header.get_param("boundary")
    if not isinstance(boundary, str) or not boundary:
        raise RequestError(400, f"The content type {MULTIPART} names no boundary: add boundary=...")
    return _multipart(body, boundary.encode("utf-8", "surrogateescape"))


def _urlencoded(text: bytes) -> Pairs:
    for pair in text.split(b"&"):
        if pair:
            name, _, value = pair.replace(b"+", b" ").partition(b"=")
            yield unquote_to_bytes(name), unquote_to_bytes(value)


def _multipart(body: bytes, boundary: bytes) -> Pairs:
    """Yield the fields of a form (RFC 7578): parts between lines that begin with the boundary, each with headers."""
    _, *parts = (b"\r\n" + body).split(b"\r\n--" + boundary)
    if not parts or not parts[-1].startswith(b"--"):
        raise RequestError(400, f"The {MULTIPART} body does not end with its boundary: was it cut off?")
    for number, part in enumerate(parts[:-1], 1):
        padding, _, lines = part.partition(b"\r\n")
        headers, gap, value = (b"\r\n" + lines).partition(b"\r\n\r\n")
        fields = email.parser.BytesHeaderParser().parsebytes(headers.removeprefix(b"\r\n"))
        name = fields.get_param("name", header="content-disposition")
        if padding.strip() or not gap or not name:
            raise RequestError(400, f"Part {number} of the {MULTIPART} body has no name in its headers.")
        if (encoding := fields.get("content-transfer-encoding", "binary").strip().lower()) not in PLAIN_ENCODINGS:
            raise RequestError(
                400, f"Part {number} of the {MULTIPART} body must not be encoded, got {encoding}: send it as binary."
            )
        yield email.utils.collapse_rfc2231_value(name).encode("utf-8", "surrogateescape"), value
