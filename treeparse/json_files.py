"""JSON as files hold it: whatever they hold, one kind of error says what is wrong."""

import json
import re
from typing import Any

_MAY_BE_HALF_OF_A_PAIR = re.compile("\\\\u[dD][89abAB]|[\ud800-\udfff]")


def from_json(content: str | bytes) -> Any:
    """Read a value.

    Raises:
        ValueError: for what is no JSON in UTF-8, or holds half of a surrogate pair, which no text in UTF-8 can hold.
    """
    text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
    value = json.loads(text)
    if _MAY_BE_HALF_OF_A_PAIR.search(text):  # a pair of escapes is a character
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"it holds {error.object[error.start]!a}, half of a surrogate pair") from error
    return value
