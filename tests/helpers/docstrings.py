"""Examples in docstrings."""

import re
import textwrap


def block_after(text: str | None, sentence: str) -> str:
    """The indented block behind the paragraph that holds a sentence."""
    found = re.search(re.escape(sentence) + r"[\s\S]*?::\n\n((?:(?: {4}.*)?\n)+)", f"{text}\n")
    assert found, sentence
    return textwrap.dedent(found[1])
