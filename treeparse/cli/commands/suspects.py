"""``treeparse suspects``: list the arcs of a treebank that a model finds improbable, the least probable first."""

import argparse
from collections.abc import Iterator, Sequence

from treeparse.cli.common import (
    add_batch_words_argument,
    add_output_argument,
    add_treebank_argument,
    positive,
    real,
    tsv_line,
)
from treeparse.cli.models import (
    SEVERAL,
    add_model_arguments,
    check_models,
    load_models,
    models_and_files,
    warn_of_mean_treebank,
)
from treeparse.corpus.request import check_outputs
from treeparse.data.annotations import figure
from treeparse.data.conllu import ConlluSentence, load_treebank
from treeparse.data.outputs import atomic_output
from treeparse.model import Parse
from treeparse.progress import Console, parsing_bar
from treeparse.sentence import EMPTY

TITLES = ("probability", "file", "line", "sent_id", "word", "form", "head", "label")
MODEL_TITLES = ("model_head", "model_label", "model_probability")
EPILOG = f"""examples:
  treeparse suspects runs/english/model dev.conllu --top 200
  treeparse suspects runs/english/model 'treebank/*.conllu' --below 0.01 -o suspects.tsv

The TSV has a row for every word whose head and label are less probable than --below, the least probable first: the
probability (exact, among all labelled trees), file, line, sentence and word, head and label, and the head, label and
probability of the model's parse. Heads are as in CoNLL-U. Many of the first rows are annotation errors if the model was
not trained on these sentences: use a model trained on other parts of the treebank. A label that the model does not know
has probability 0; of a word without a label (DEPREL is _) the probability is that of its head.

{SEVERAL}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "models", nargs="+", metavar="MODEL", help="the folder of a model, or of its run; several score as one"
    )
    parser.add_argument("gold", nargs="+", metavar="GOLD", help="CoNLL-U with trees, also compressed; globs; stdin: -")
    add_output_argument(parser, "the TSV")
    probability = real("a probability from 0 to 1", lambda value: 0 <= value <= 1)
    parser.add_argument(
        "--below", type=probability, default=0.03, metavar="P", help="list words less probable than P (default: 0.03)"
    )
    parser.add_argument("--top", type=positive, metavar="N", help="write only the first N words")
    parser.add_argument("--multi-root", action="store_true", help="allow trees of several roots")
    add_batch_words_argument(parser)
    add_treebank_argument(parser)
    add_model_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """List the improbable arcs."""
    models, files = models_and_files([*args.models, *args.gold])
    check_outputs([args.output], inputs=files, others=models, overwrite_input=args.overwrite_input)
    check_models(models, args)
    with Console(quiet=args.quiet).during("reading the files"):
        sentences = load_treebank(files, single_root=not args.multi_root)
    model, words = load_models(models, args), [sentence.words for sentence in sentences]
    options = {"batch_words": args.batch_words, "treebank": args.treebank}
    warn_of_mean_treebank(model, args.treebank, args)
    with parsing_bar(words, hidden=args.quiet, remark="gold trees scored") as progress:
        gold = model.score_trees(words, progress=progress, **options)
    with parsing_bar(words, hidden=args.quiet, remark="parsed") as progress:
        parses = model.parse(words, probabilities=True, progress=progress, **options)
    rows = [row for trees in zip(sentences, gold, parses, strict=True) for row in _rows(*trees, below=args.below)]
    rows.sort(key=lambda row: row[0])
    with atomic_output(args.output) as output:
        output.write(tsv_line([*TITLES, *MODEL_TITLES]))
        for row in rows[: args.top]:
            output.write(tsv_line([figure(value) if isinstance(value, float) else value for value in row]))
    return 0


def _rows(
    sentence: ConlluSentence, gold: Parse, parse: Parse, *, below: float
) -> Iterator[tuple[float, *tuple[object, ...]]]:
    """Yield a row for each word whose labelled arc is less probable than ``below``."""
    columns: Sequence[Sequence[object]] = (
        *(sentence.word_lines(), gold.tokens, gold.heads, gold.labels),
        *(parse.heads, parse.labels, parse.label_probs or ()),
    )
    of_arcs = zip(gold.labels, gold.arc_probs or (), gold.label_probs or (), strict=True)
    probs = [arc if label == EMPTY else labeled for label, arc, labeled in of_arcs]
    for word, (prob, (line, form, *arcs)) in enumerate(zip(probs, zip(*columns, strict=True), strict=True), 1):
        if prob < below:
            yield prob, sentence.source, line, sentence.sent_id or "", word, form, *arcs
