"""Raw text for the commands that parse: the argument that names a tokeniser, and the sentences of a line."""

import argparse
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from treeparse.errors import TreeparseError

if TYPE_CHECKING:
    from treeparse.data.conllu import ConlluSentence

RAW_TEXT = """\
With --format text --tokenizer spacy:en each line is a paragraph of raw text, which is split into sentences and words by
spaCy's rules for a language; by a pipeline of spaCy's, as spacy:en_core_web_sm; or by Stanza's, as stanza:en, multiword
tokens included. Words should be as in the treebank of the model. The output has # text, SpaceAfter=No and # newpar, the
text in Unicode's NFC, and ids of the line and the sentence in it, as 3-2."""

Splitter = Callable[["ConlluSentence"], Iterable["ConlluSentence"]]


def add_tokenizer_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--tokenizer``."""
    parser.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="split raw text by spacy:LANGUAGE, spacy:PIPELINE or stanza:LANGUAGE, which must be installed, see below",
    )


def splitter(args: argparse.Namespace) -> Splitter:
    """What gives the sentences of what was read: it is one, or a line of raw text."""
    if args.tokenizer is None:
        return lambda sentence: (sentence,)
    from treeparse.data.text.tokenizers import tokenised, tokenizer_named

    if args.format != "text":
        raise TreeparseError("--tokenizer splits raw text: give --format text, too.")
    tokenizer = tokenizer_named(args.tokenizer)
    return lambda line: tokenised(line, tokenizer)
