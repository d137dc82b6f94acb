"""Words per second of a training step and of parsing on a treebank, and the share of each part of them.

    python -m scripts.benchmarks.bench_parsing --treebank $EWT-dev.conllu --model runs/fast/model

A training step is cut into batches (vocabularies to tensors, and to the device), encoder, scorer (arcs, vectors of
labels), labels (scores of those of the arcs that are asked for), trees (the rest of the loss) and optimiser, each with
its gradients; steps without these cuts, as in training, are timed besides. Parsing batch by batch is cut into reading
the file, batches, encoder, scorer, labels, trees (the best tree and its log probability) and parses (Python's objects
of them). With --device cuda every part waits for the device at its ends. ``Parser.parse`` is timed as a whole, as users
call it: by the clock, and in seconds of all cores, which other work on the machine disturbs less. Figures are medians
over passes. Without --model the scorer is untrained, which is the hard case of a decoder.

Two versions of treeparse are compared by one script, --parsing alone, on a machine that does nothing else:

    git worktree add ../before 9f6a782
    PYTHONPATH=../before python -m scripts.benchmarks.bench_parsing --treebank ... --model runs/fast/model --parsing
        --parses before.json
    python -m scripts.benchmarks.bench_parsing --treebank ... --model runs/fast/model --parsing --parses after.json
    cmp before.json after.json      # the trees are the same

With --supar and --stanza, clones of these, a last table has their own parsers on the same sentences, with random
weights, and treeparse's parses once more, in turns with theirs. Random scores are the hard case of their decoders:
almost every sentence has cycles, which of a trained parser's sentences few have. So their encoder and scorer alone are
timed within the same passes: a trained peer takes longer than these and less than the whole.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import torch
from scripts.support.peers import parsers
from scripts.support.peers.parser_race import peer_table
from scripts.support.training.parts import Times, parsing_parts, step_parts, waiting_clock, whole_steps

import treeparse
from treeparse.batch import pick_device
from treeparse.data import load_treebank
from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.model import Parser, ParserConfig
from treeparse.objectives import HeadSelection, TreeLikelihood
from treeparse.sentence import Sentence


def main() -> None:
    """Print the tables."""
    options = _options()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    device = pick_device(options.device)
    if options.precision == "int8" and device.type != "cpu":
        raise SystemExit("--precision int8 is for the CPU.")
    sentences = [sentence.words for sentence in load_treebank([options.treebank])]
    words = sum(map(len, sentences))
    parser = Parser.from_pretrained(options.model) if options.model else Parser.build(ParserConfig(), sentences)
    parser.to(device)
    places = BucketBatchSampler(list(map(len, sentences)), max_words=options.batch_words, shuffle=True, seed=1)
    batches = [[sentences[place] for place in own] for own in places]
    print(f"treeparse of {Path(treeparse.__file__).parent}")
    print(f"{len(sentences)} sentences, {words} words, {len(batches)} batches, {options.threads} threads, ", end="")
    print(f"{device_name(device)}, scorer in {options.precision}, {options.model or 'untrained'}\n")
    autocast, now = partial(_autocast, options), waiting_clock(device)
    for objective in () if options.parsing else (TreeLikelihood(), HeadSelection()):
        optimizer = torch.optim.AdamW(parser.train().parameters(), lr=1e-9, fused=True)
        given = parser, batches, objective, optimizer, autocast, now
        name = f"Training step, {type(objective).__name__}"
        _report(name, _median(partial(step_parts, *given), options), words)
        _report_whole("Steps as in training", _median(lambda g=given: {"clock": whole_steps(*g)}, options), words)
    parser.eval()
    if options.precision == "int8":
        parser.use_precision("int8")
    read = partial(load_treebank, [options.treebank])
    parts = _median(lambda: parsing_parts(parser, batches, read, autocast, now), options)
    _report("Parsing batch by batch", parts, words)
    _report_whole("Parser.parse", _median(lambda: _parse_all(parser, sentences, options), options), words)
    _report_peers(parser, sentences, options)
    if options.parses:
        trees = [(parse.heads, parse.labels) for parse in parser.parse(sentences)]
        Path(options.parses).write_text("\n".join(map(json.dumps, trees)) + "\n", encoding="utf-8")


def _parse_all(parser: Parser, sentences: Sequence[Sentence], options: argparse.Namespace) -> Times:
    now = waiting_clock(parser.device)
    clock, cores = now(), time.process_time()
    with _autocast(options):
        parser.parse(sentences, batch_words=options.parse_words)
    return {"clock": now() - clock, "cores": time.process_time() - cores}


def _autocast(options: argparse.Namespace) -> AbstractContextManager[object]:
    device = pick_device(options.device).type
    return torch.autocast(device, torch.bfloat16) if options.precision == "bf16" else nullcontext()


def _median(run: Callable[[], Times], options: argparse.Namespace) -> Times:
    run()  # compiles the kernels and warms the caches
    passes = [run() for _ in range(options.passes)]
    return {part: statistics.median(times[part] for times in passes) for part in passes[0]}


def device_name(device: torch.device) -> str:
    """What computes."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


def _report(name: str, times: Times, words: int) -> None:
    total = sum(times.values())
    print(f"| {name} | ms per 1,000 words | share |\n|---|---:|---:|")
    for part, seconds in times.items():
        print(f"| {part} | {1e6 * seconds / words:.2f} | {100 * seconds / total:.1f}% |")
    print(f"| all: {words / total:,.0f} words/s; trees: | {1e6 * total / words:.2f} | {times['trees'] / total:.1%} |\n")


def _report_whole(name: str, times: Times, words: int) -> None:
    print(f"| {name} | ms per 1,000 words | words/s |\n|---|---:|---:|")
    for part, seconds in times.items():
        print(f"| {part} | {1e6 * seconds / words:.2f} | {words / seconds:,.0f} |")
    print()


def _report_peers(parser: Parser, sentences: Sequence[Sentence], options: argparse.Namespace) -> None:
    clones = (parsers.supar, options.supar), (parsers.stanza, options.stanza)
    peers = [build(clone, sentences, parser.label_names) for build, clone in clones if clone]
    if peers:
        print("Peers have random weights.\n")
        ours = partial(_parse_all, parser, sentences, options)
        print(*peer_table(ours, peers, sentences, options.passes), sep="\n", end="\n\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebank", required=True, help="a CoNLL-U file")
    parser.add_argument("--model", help="a model folder; without, an untrained scorer of the default sizes")
    parser.add_argument("--batch-words", type=int, default=1000, help="most words of a batch (default 1000)")
    parser.add_argument("--parse-words", type=int, default=5000, help="the same for Parser.parse (default 5000)")
    parser.add_argument("--device", default="cpu", help="auto, cpu or cuda (default cpu)")
    parser.add_argument("--threads", type=int, default=2, help="default 2")
    parser.add_argument("--passes", type=int, default=3, help="passes over the treebank (default 3)")
    parser.add_argument("--parsing", action="store_true", help="leave training out")
    parser.add_argument("--parses", metavar="FILE", help="write the trees there, one a line")
    for name in ("SuPar", "Stanza"):
        text = f"a clone of {name}: time its parser too, with random weights"
        parser.add_argument(f"--{name.lower()}", type=Path, metavar="DIR", help=text)
    choices = ("32", "bf16", "int8")
    parser.add_argument("--precision", default="32", choices=choices, help="of the scorer; int8 in parsing alone")
    return parser.parse_args()


if __name__ == "__main__":
    main()
