"""``treeparse rank``: order the sentences of a corpus, the most uncertain first, for annotation."""

import argparse
from collections.abc import Iterable, Iterator

from treeparse.cli import corpora
from treeparse.cli.common import positive, tsv_line
from treeparse.cli.models import SEVERAL
from treeparse.corpus.request import is_folder
from treeparse.corpus.writers import Writer
from treeparse.data.annotations import figure, with_comments
from treeparse.data.conllu import ConlluSentence
from treeparse.data.files import plain_name
from treeparse.data.parses import NBestList, Parse
from treeparse.errors import TreeparseError
from treeparse.model.inference.tree_request import TreeRequest

VALUES = {  # the attribute of a Parse for each choice of --by
    "entropy": "entropy",
    "expected_error": "expected_errors",
    "expected_gradient": "expected_gradient",
}
TITLES = ("file", "line", "sent_id", "words", "text")
EPILOG = f"""examples:
  treeparse rank runs/english/model corpus.conllu --top 500 -o next.conllu
  treeparse rank runs/english/model 'corpus/*.conllu.gz' --by expected_error --per-word -o ranked.tsv
  treeparse rank runs/english/model corpus.txt --format text | head

Sentences are sorted by falling value, and sentences of equal values as in the input:
  entropy            the entropy of all labelled trees of the sentence, in nats
  expected_error     the expected number of words of the parse with a wrong head or label
  expected_gradient  the expected squared length of the gradient of a tree's log probability in the scores of labelled
                     arcs (Settles and Craven 2008), which is how far learning the tree would move the scores. It equals
                     the expected number of words in which two random trees differ
All values are exact. They grow with the length of the sentence; --per-word divides by the number of words. A TSV has a
row a sentence: the value, file, line, id and words. CoNLL-U has the input sentence, with the value in a comment, which
replaces one of the same name. All sentences of an output are in memory at once.

{corpora.CONDITIONS}

{SEVERAL}
With --combine marginals only expected_error exists.

{corpora.CORPORA.replace("COMMAND", "rank")}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    output = "the sentences; .gz compresses; a folder gets a file an input, each ranked by itself"
    corpora.add_arguments(parser, output=output)
    parser.add_argument("--by", choices=VALUES, default="entropy", help="see below (default: entropy)")
    parser.add_argument("--per-word", action="store_true", help="divide by the number of words")
    parser.add_argument("--top", type=positive, metavar="N", help="write only the first N sentences")
    parser.add_argument(
        "--output-format",
        choices=("tsv", "conllu"),
        help="the output format (default: conllu if OUT ends in .conllu, .conllu.gz and the like, otherwise tsv)",
    )


def run(args: argparse.Namespace) -> int:
    """Order the sentences and write them."""
    by_gradient = args.by == "expected_gradient"
    trees = TreeRequest(probabilities=not by_gradient, gradient=by_gradient)
    has_conllu_name = not is_folder(args.output) and plain_name(args.output).endswith(".conllu")
    output_format = args.output_format or ("conllu" if has_conllu_name else "tsv")
    return corpora.parse_files(args, trees, (RankedConllu if output_format == "conllu" else RankedTable)(args))


class RankedTable(Writer):
    """Writes sentences by falling value, a row each."""

    suffix = ".tsv"

    def __init__(self, args: argparse.Namespace) -> None:
        super().__init__()
        self._by, self._per_word, self._top = args.by, args.per_word, args.top
        self._name = f"{args.by}_per_word" if args.per_word else args.by

    def texts(self, results: Iterable[NBestList]) -> Iterator[str]:
        """Return the text of each sentence."""
        values = [(result.sentence, self._value(result.parses[0])) for result in results]
        return self._ranked_texts(sorted(values, key=lambda pair: -pair[1])[: self._top])

    def _value(self, parse: Parse) -> float:
        value: float | None = getattr(parse, VALUES[self._by])
        if value is None:
            name = self._by.replace("_", " ")
            raise TreeparseError(f"Models combined by marginals have no exact {name}: rank --by expected_error.")
        return value / len(parse.tokens) if self._per_word else value

    def _ranked_texts(self, ranked: Iterable[tuple[ConlluSentence, float]]) -> Iterator[str]:
        yield tsv_line([self._name, *TITLES])
        for sentence, value in ranked:
            words = sentence.words.forms
            columns = (sentence.source, sentence.line, sentence.sent_id or "", len(words), " ".join(words))
            yield tsv_line([figure(value), *columns])


class RankedConllu(RankedTable):
    """Writes the input sentences by falling value, with the value in a comment."""

    suffix = ".conllu"

    def _ranked_texts(self, ranked: Iterable[tuple[ConlluSentence, float]]) -> Iterator[str]:
        for sentence, value in ranked:
            yield with_comments(sentence, {self._name: figure(value)}).alone().text
