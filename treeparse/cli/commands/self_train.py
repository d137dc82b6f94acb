"""``treeparse self-train``: train on few trees and on much text, which the parser of the previous round parses."""

import argparse
import math

from treeparse import terminal
from treeparse.cli.common import aligned, modules_of_current_folder, percent, positive, real
from treeparse.cli.training import add_config_arguments, is_further_process, read_config, stoppable
from treeparse.shipped import file_or_shipped
from treeparse.training.run_directory import best_record
from treeparse.training.self_training import Round, self_train

TAKES_OVERRIDES = True
EPILOG = """Every key of the config can also be a dotted option, as in treeparse train.

examples:
  treeparse self-train --data.train few.conllu --data.dev dev.conllu --data.unlabelled "text/*.txt" --output runs/few
  treeparse self-train --config my.yaml --rounds 3 --least-log-prob -0.5 --output runs/few
  treeparse predict runs/few my-text.conllu -o parsed.conllu

Round 0 trains on the trees alone. Each later round trains a new parser on the trees and on the text (CoNLL-U or a
tokenised sentence a line) as the parser of the previous round parses it. DIR holds the run of each round (round-0,
round-1, ...) and in model/ the parser of the highest dev LAS, or without data.dev the last parser. The same command
resumes after a stop; with more --rounds it adds rounds. In Python: treeparse.training.self_training."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    add_config_arguments(parser, default="semisup")
    parser.add_argument("--rounds", type=positive, default=2, metavar="N", help="rounds after round 0 (default: 2)")
    parser.add_argument(
        "--least-log-prob",
        type=real("the log of a probability, a number of at most 0", lambda value: -math.inf < value <= 0),
        metavar="X",
        help="leave out sentences of the text whose best tree has less than this log probability a word, such as -0.5 "
        "(default: take all)",
    )


@modules_of_current_folder()
def run(args: argparse.Namespace) -> int:
    """Train all rounds and print a table of them; if a signal stops the training, a message says how to resume."""
    return stoppable(lambda: _self_train(args))


def _self_train(args: argparse.Namespace) -> None:
    config = read_config(file_or_shipped(args.config), args, output=args.output)
    rounds = self_train(config, args.rounds, least_log_prob=args.least_log_prob, quiet=args.quiet)
    if not args.quiet and not is_further_process():
        terminal.write(*_table(rounds, best_record(rounds)), f"model: {config.output}/model")


def _table(rounds: list[Round], best: Round) -> list[str]:
    rows = [["round", "dev UAS", "dev LAS", "silver sentences", "of", ""]]
    for turn in rounds:
        scores = ["-" if score is None else percent(score) for score in (turn.dev_uas, turn.dev_las)]
        remark = "best" if turn is best else ""
        rows.append([str(turn.number), *scores, f"{turn.silver:,}", f"{turn.text:,}", remark])
    return aligned(rows)
