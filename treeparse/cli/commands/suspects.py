"""``treeparse suspects``: list the arcs of a treebank that a model finds improbable, the least probable first."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from treeparse.cli.common import (
    add_batch_words_argument,
    add_output_argument,
    add_treebank_argument,
    output_file,
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
from treeparse.cli.systems import ROW_WIDTH, figure_of, section_of, tree_of
from treeparse.corpus.request import check_outputs
from treeparse.data.annotations import figure, with_comments
from treeparse.data.conllu import ConlluSentence, load_treebank, write_conllu
from treeparse.data.outputs import atomic_output, atomic_write
from treeparse.model import Parse
from treeparse.pictures.page import Figure, Section, legend, page
from treeparse.pictures.tree import draw_tree
from treeparse.progress import Console, parsing_bar
from treeparse.sentence import EMPTY

TITLES = ("probability", "file", "line", "sent_id", "word", "form", "head", "label")
MODEL_TITLES = ("model_head", "model_label", "model_probability")
HIGHLIGHTS = ("highlight tokens", "highlight deprels")  # comments of ConlluEditor
EPILOG = f"""examples:
  treeparse suspects runs/english/model dev.conllu --top 200
  treeparse suspects runs/english/model 'treebank/*.conllu' --below 0.01 -o suspects.tsv
  treeparse suspects runs/english/model dev.conllu --top 200 -o suspects.tsv --html suspects.html
  treeparse suspects runs/english/model dev.conllu --top 200 -o suspects.tsv --highlight look.conllu

The TSV has a row for every word whose head and label are less probable than --below, the least probable first: the
probability (exact, among all labelled trees), file, line, sentence and word, head and label, and the head, label and
probability of the model's parse. Heads are as in CoNLL-U. Many of the first rows are annotation errors if the model was
not trained on these sentences: use a model trained on other parts of the treebank. A label that the model does not know
has probability 0; of a word without a label (DEPREL is _) the probability is that of its head.

--html draws the sentences of these words, the most doubtful first: the tree of the file, where the suspects are dashed
or framed, above the model's. --highlight writes all sentences, with the comments by which ConlluEditor shows the words
and arcs to look at; others of that name go.

{SEVERAL}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "models", nargs="+", metavar="MODEL", help="the folder of a model, or of its run; several score as one"
    )
    parser.add_argument("gold", nargs="+", metavar="GOLD", help="CoNLL-U with trees, also compressed; globs; stdin: -")
    add_output_argument(parser, "the TSV")
    parser.add_argument("--html", type=output_file, metavar="PAGE", help="draw the suspects on a page")
    parser.add_argument("--highlight", type=output_file, metavar="CONLLU", help="mark the suspects for ConlluEditor")
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
    outputs = [args.output, args.html, args.highlight]
    check_outputs(outputs, inputs=files, others=models, overwrite_input=args.overwrite_input)
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
    suspects = [
        suspect
        for index, trees in enumerate(zip(sentences, gold, parses, strict=True))
        for suspect in _suspects(index, *trees, below=args.below)
    ]
    suspects = sorted(suspects, key=lambda suspect: suspect.prob)[: args.top]
    with atomic_output(args.output) as output:
        output.write(tsv_line([*TITLES, *MODEL_TITLES]))
        for suspect in suspects:
            values = (suspect.prob, *suspect.place, suspect.word, suspect.form, *suspect.own, *suspect.other)
            output.write(tsv_line([figure(value) if isinstance(value, float) else value for value in values]))
    if args.html is not None:
        sections = [*_sections(sentences, parses, suspects)]
        introduction = legend("the model's parse") + "<p>The most doubtful sentence comes first.</p>\n"
        atomic_write(args.html, page(", ".join(files), sections, introduction=introduction))
    if args.highlight is not None:
        write_conllu(args.highlight, _highlighted(sentences, suspects))
    return 0


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A word whose labelled arc is improbable.

    Attributes:
        prob: the probability of its arc and label.
        index: of its sentence.
        place: file, line and ``sent_id``.
        word: its number.
        form: its form.
        own: its head and label.
        other: head, label and their probability in the model's parse.
    """

    prob: float
    index: int
    place: tuple[str, int, str]
    word: int
    form: str
    own: tuple[int, str]
    other: tuple[int, str, float]


def _suspects(index: int, sentence: ConlluSentence, gold: Parse, parse: Parse, *, below: float) -> Iterator[_Suspect]:
    """Yield the words of a sentence whose labelled arcs are less probable than ``below``."""
    of_arcs = zip(gold.labels, gold.arc_probs or (), gold.label_probs or (), strict=True)
    probs = [arc if label == EMPTY else labeled for label, arc, labeled in of_arcs]
    columns = zip(sentence.word_lines(), gold.tokens, gold.heads, gold.labels, strict=True)
    others = zip(parse.heads, parse.labels, parse.label_probs or (), strict=True)
    for word, (prob, (line, form, head, label), other) in enumerate(zip(probs, columns, others, strict=True), 1):
        if prob < below:
            place = (sentence.source, line, sentence.sent_id or "")
            yield _Suspect(prob, index, place, word, form, (head, label), other)


def _sections(
    sentences: Sequence[ConlluSentence], parses: Sequence[Parse], suspects: Iterable[_Suspect]
) -> Iterator[Section]:
    """Draw each sentence with suspects, the most doubtful first: its tree, its suspects marked, and the model's."""
    for index, own in _by_sentence(suspects).items():
        sentence, parse = sentences[index], parses[index]
        tree = tree_of(sentence)
        heads, labels = [*tree.heads], [*tree.labels]
        for suspect in own:
            heads[suspect.word - 1], labels[suspect.word - 1], _ = suspect.other
        reference = replace(tree, heads=tuple(heads), labels=tuple(labels))
        captions = [
            f"{suspect.word} {suspect.form}: {_arc(*suspect.own, suspect.prob)}; the model: {_arc(*suspect.other)}"
            for suspect in own
        ]
        system = tree_of(sentence, sentence.words.with_tree(parse.heads, parse.labels))
        drawn = Figure(draw_tree(tree, reference, wrap=ROW_WIDTH), ", ".join(captions))
        yield section_of(sentence, index, [drawn, figure_of(system, tree, "the model")])


def _arc(head: int, label: str, prob: float) -> str:
    return f"{label} of {head} (probability {prob:.2g})"


def _highlighted(sentences: Sequence[ConlluSentence], suspects: Iterable[_Suspect]) -> Iterator[ConlluSentence]:
    """Yield all sentences, with comments that ConlluEditor reads: the words and arcs to look at."""
    found = _by_sentence(suspects)
    for index, sentence in enumerate(sentences):
        words = " ".join(str(suspect.word) for suspect in sorted(found.get(index, ()), key=lambda each: each.word))
        yield with_comments(sentence, dict.fromkeys(HIGHLIGHTS, words or None))


def _by_sentence(suspects: Iterable[_Suspect]) -> dict[int, list[_Suspect]]:
    """Group suspects by their sentences, in the order in which these come first."""
    groups: dict[int, list[_Suspect]] = {}
    for suspect in suspects:
        groups.setdefault(suspect.index, []).append(suspect)
    return groups
