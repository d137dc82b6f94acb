"""Parse test files with one scorer and three decoders: non-projective, projective and minimum risk.

    export TREEPARSE_TREEBANKS=...   # the folder that holds UD_English-EWT and UD_Latin-Perseus
    python -m scripts.experiments.compare_decoders --models runs/kbest --output FILE

Every decoder returns a labelled tree: the best one, the best projective one, the one with the highest expected LAS. The
parsers come from a folder of models and are trained by ``configs/fast.yaml`` where they are missing. The best tree must
never score below the others; the script ends with an error otherwise.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean

from scripts.support.reports.markdown import Opening, report
from scripts.support.training.models import trained_parser
from scripts.support.training.treebanks import EWT, LATIN, Treebank, gold_sentences

from treeparse.data.parses import with_parses
from treeparse.errors import TreeparseError
from treeparse.metrics import attachment_scores
from treeparse.model import Parse, Parser
from treeparse.sentence import Sentence, nonprojective_words

TREEBANKS = (LATIN, EWT)
DECODERS = ("nonprojective", "projective", "minimum_risk")
ROUNDING = 1e-5  # of a score, relative: float32 sums
OPENING = Opening(
    title="One scorer, three decoders",
    measured="attachment scores of the labelled trees that three decoders choose, and how many of them "
    "are non-projective.",
    on="the test sentences of Latin-Perseus and EWT, as parsers trained by `configs/fast.yaml` score them.",
    read="UAS, LAS and all heads right in percent; non-projective trees as a share of the parses; score "
    "and log probability are means over sentences, the latter in nats, among all labelled trees, non-projective"
    " ones included.",
    repeat="python -m scripts.experiments.compare_decoders --models runs/kbest --output "
    "scripts/experiments/results/compare_decoders.md",
)


def table(treebank: Treebank, parser: Parser, gold: Sequence[Sentence]) -> Iterator[str]:
    """Markdown: a row a decoder."""
    crossing = mean(bool(nonprojective_words(sentence.heads or ())) for sentence in gold)
    yield f"\n## {treebank.name}: {len(gold)} sentences, {crossing:.1%} of the gold trees non-projective\n"
    yield "| decoder | UAS | LAS | all heads right | non-projective trees | score | log probability |"
    yield "|:--|--:|--:|--:|--:|--:|--:|"
    parses = {decoder: parser.parse(gold, decoder=decoder) for decoder in DECODERS}
    for decoder, found in parses.items():
        check_scores(parses["nonprojective"], found, decoder)
        yield row(decoder, gold, found)


def check_scores(best: Sequence[Parse], others: Sequence[Parse], decoder: str) -> None:
    """Raise where a decoder's tree scores higher than the best tree."""
    for place, (one, other) in enumerate(zip(best, others, strict=True)):
        if one.score < other.score - ROUNDING * max(1.0, abs(other.score)):
            raise TreeparseError(
                f"The {decoder} tree of sentence {place} scores {other.score}, above the best tree's {one.score}."
            )


def row(decoder: str, gold: Sequence[Sentence], parses: Sequence[Parse]) -> str:
    """One decoder's scores."""
    system = with_parses(gold, parses)
    scores = attachment_scores(gold, system)
    shares = (scores.uas, scores.las, scores.complete_match_unlabeled)
    crossing = mean(bool(nonprojective_words(parse.heads)) for parse in parses)
    cells = [f"{100 * share:.2f}" for share in shares] + [f"{crossing:.1%}"]
    cells += [f"{mean(parse.score for parse in parses):.3f}", f"{mean(parse.log_prob for parse in parses):.3f}"]
    return f"| {decoder} | {' | '.join(cells)} |"


def lines(options: argparse.Namespace) -> Iterator[str]:
    """The whole report, as it is measured."""
    yield OPENING.text()
    for treebank in TREEBANKS:
        parser = trained_parser(treebank, options.treebanks, options.models, options.config, options.objective)
        yield from table(treebank, parser, gold_sentences(treebank, options.treebanks, options.sentences))


def main(arguments: Sequence[str] | None = None) -> None:
    """Train what is missing, parse and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    treebanks = os.environ.get("TREEPARSE_TREEBANKS", ".")
    parser.add_argument("--treebanks", type=Path, default=treebanks, metavar="DIR", help="default: the variable's")
    parser.add_argument("--models", type=Path, default="runs/kbest", metavar="DIR", help="default: runs/kbest")
    parser.add_argument("--config", default="fast", help="a YAML file, or a name from treeparse config (default: fast)")
    parser.add_argument("--objective", default="TreeLikelihood", metavar="NAME", help="default: TreeLikelihood")
    parser.add_argument("--sentences", type=int, metavar="N", help="only the first ones of each test file")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables here, as markdown")
    options = parser.parse_args(arguments)
    try:
        report(lines(options), options.output)
    except TreeparseError as error:
        sys.exit(f"compare_decoders: {error}")


if __name__ == "__main__":
    main()
