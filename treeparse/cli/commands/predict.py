"""``treeparse predict``: parse CoNLL-U or text with a trained model."""

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from treeparse.cli import head_sets, reading
from treeparse.cli.common import add_decoder_argument
from treeparse.cli.conditions import CONDITIONS, read_conditions
from treeparse.cli.models import EXPECTED_TREE, SEVERAL
from treeparse.cli.parts import make_plan
from treeparse.cli.tokenizing import RAW_TEXT

if TYPE_CHECKING:
    from treeparse.data.conllu import ConlluSentence
    from treeparse.model import Ensemble, Parse, Parser

NAME = "predict"
HELP = "parse CoNLL-U or text"
EPILOG = f"""examples:
  treeparse predict runs/english/model test.conllu -o parsed.conllu
  treeparse predict runs/english/model 'corpus/*.conllu.gz' -o parsed.conllu.gz --threads 4
  treeparse predict runs/english/model 'corpus/**/*.conllu.gz' -o parsed/ --max-words 200 --skip-existing
  treeparse predict runs/english/model test.conllu -o parsed.conllu --decoder minimum_risk
  treeparse predict runs/english/model test.conllu -o parsed.conllu --probabilities
  treeparse predict runs/english/model test.conllu -o parsed.conllu --head-sets 0.05 --held-out dev.conllu
  treeparse predict runs/one/model runs/two/model runs/three/model test.conllu -o parsed.conllu --combine marginals
  treeparse predict runs/english/model partly.conllu -o filled.conllu --keep-heads --within
  treeparse predict runs/english/model test.conllu -o parsed.conllu --rules ud
  echo 'They saw her duck .' | treeparse predict -q runs/english/model - --format text --tags
  echo 'They saw her duck. She ran.' | treeparse predict runs/english/model - --format text --tokenizer spacy:en

In CoNLL-U only HEAD, DEPREL and DEPS (which becomes _) of words change; what stood there before is not read, but by
--keep-heads. With --tags the columns of tags that the model predicts (model.tags in its training) change, too. With
--probabilities MISC of words gets ArcProb, the exact probability of the arc among all trees, and LabelProb, that of arc
and label together (that of the label, given its arc, at the label_temperature of a model that treeparse calibrate
changed); comments get tree_prob, that of the whole tree, and the entropy of all trees in nats (none of --combine
marginals).
{head_sets.EXPLAINED}
OUT appears once it is complete; standard output gets the sentences as they are parsed, in the order of the input.
{reading.CHUNKS}

{RAW_TEXT}

{CONDITIONS}

{SEVERAL}
{EXPECTED_TREE}

{reading.CORPORA.replace("COMMAND", "predict")}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    reading.add_arguments(
        parser, output="CoNLL-U; .gz, .bz2, .xz or .zst compresses; a folder gets a file an input (default: -)"
    )
    add_decoder_argument(parser)
    parser.add_argument("--tags", action="store_true", help="write the UPOS, XPOS and FEATS that the model predicts")
    parser.add_argument(
        "--probabilities", action="store_true", help="write how probable arcs, labels and trees are, see below"
    )
    head_sets.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Parse the sentences and write them."""
    plan = make_plan(args, reading.conllu_suffix(args))
    from treeparse.data.conllu import write_conllu

    conditions = read_conditions(args)
    head_sets.check(args)

    def parse(parser: "Parser | Ensemble", work: reading.Work) -> "list[Parse]":
        from treeparse.model.tagging import check_tags

        if args.tags:
            check_tags(parser)
        return parser.parse(
            work.sentences,
            batch_words=args.batch_words,
            decoder=args.decoder,
            probabilities=args.probabilities,
            head_threshold=head_sets.threshold(parser, args),
            progress=work.progress,
            **conditions.arguments,
        )

    def write(target: str, parsed: "Iterator[tuple[ConlluSentence, Parse]]") -> None:
        write_conllu(target, (_written(sentence, parse, args) for sentence, parse in parsed))

    return reading.parse_files(args, plan, parse, write, remark=conditions.remark)


def _written(sentence: "ConlluSentence", parse: "Parse", args: argparse.Namespace) -> "ConlluSentence":
    from treeparse.data.annotations import with_head_sets, with_probabilities

    tags = parse.tags if args.tags else {}
    parsed = sentence.with_parse(parse.heads, parse.labels, tags=tags, drop_empty=args.drop_empty)
    if args.probabilities:
        parsed = with_probabilities(parsed, parse)
    return parsed if args.head_sets is None else with_head_sets(parsed, parse)
