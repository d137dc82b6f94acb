"""CoNLL-U: an item is a sentence."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

from treeparse.corpus.readers.reader import Reader
from treeparse.data.conllu import ConlluSentence, RawSentence, parse_conllu, raw_conllu
from treeparse.data.validation import TreeCheck


class ConlluReader(Reader):
    """Reads CoNLL-U."""

    is_text: ClassVar[bool] = False

    def items(self, path: Path, span: range | None = None) -> Iterator[RawSentence]:
        """Yield the sentences of a file as bytes."""
        return raw_conllu(path, prompt=self.options.prompt, span=span)

    def sentences(self, item: RawSentence, check: TreeCheck | None) -> Sequence[ConlluSentence]:
        """Return the sentence."""
        sentence = parse_conllu(item, check)
        if isinstance(sentence, ConlluSentence):
            return (sentence,)
        raise sentence[0]
