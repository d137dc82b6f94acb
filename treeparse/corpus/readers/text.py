"""Text: an item is a line, which is a sentence of words between spaces, or with a tokenizer a paragraph."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from treeparse.corpus.readers.reader import Reader
from treeparse.data.conllu import ConlluSentence, RawSentence
from treeparse.data.text.tokenised import parse_text, raw_text
from treeparse.data.validation import TreeCheck


class TextReader(Reader):
    """Reads text; a sentence's id is the number of its line among those that are not blank."""

    def items(self, path: Path, span: range | None = None) -> Iterator[RawSentence]:
        """Yield the lines that are not blank."""
        return raw_text(path, span=span)

    def sentences(self, item: RawSentence, check: TreeCheck | None) -> Sequence[ConlluSentence]:
        """Return the sentence of a line."""
        return (parse_text(item, first=item.before + 1),)
