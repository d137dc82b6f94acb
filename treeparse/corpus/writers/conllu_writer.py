"""CoNLL-U: each sentence with its tree, or for lists one block for each tree."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from treeparse.corpus.writers.writer import Writer, with_id
from treeparse.data.annotations import with_head_sets, with_probabilities
from treeparse.data.conllu import following_text, joinable_texts
from treeparse.data.nbest.list_files import nbest_texts
from treeparse.data.parses import NBestList


class ConlluWriter(Writer):
    """Writes CoNLL-U, for lists one block a tree; only HEAD, DEPREL, DEPS and what the options add change."""

    suffix = ".conllu"

    def texts(self, results: Iterable[NBestList]) -> Iterator[str]:
        """Yield the text of each sentence."""
        if self.options.lists:
            return nbest_texts(map(with_id, results), "conllu", drop_empty=self.options.drop_empty)
        return joinable_texts(map(self._text, results))

    @property
    def is_independent(self) -> bool:
        """Whether there is one tree a sentence: the names of lists must differ."""
        return not self.options.lists

    def following(self, before: str, text: str) -> str:
        """Return the text with a missing blank line before it, and without a byte order mark."""
        return following_text(before, text)

    def _text(self, result: NBestList) -> str:
        parse, options, sentence = result.parses[0], self.options, result.sentence
        tags = parse.tags if options.tags else {}
        text = sentence.text_with_parse(parse.heads, parse.labels, tags=tags, drop_empty=options.drop_empty)
        if options.probabilities:
            text = with_probabilities(replace(sentence, text=text), parse).text
        return with_head_sets(replace(sentence, text=text), parse).text if options.head_sets else text
