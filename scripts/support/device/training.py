"""What trees take of a training step and of parsing on a device, words a second, and a step as a CUDA graph."""

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from scripts.support.device.targets import verdict_on_share
from scripts.support.training.parts import Batches, Times, parsing_parts, step_parts, waiting_clock, whole_steps

from treeparse.batch import Batch
from treeparse.data import load_treebank
from treeparse.data.batches.mixing import BucketBatchSampler
from treeparse.model import Parser
from treeparse.nn.precision import has_bfloat16
from treeparse.objectives import TreeLikelihood
from treeparse.sentence import Sentence
from treeparse.training import load_config

REPEATS = 20  # of a step, as a graph and not


@dataclass(frozen=True)
class Work:
    """What is trained on and parsed.

    Attributes:
        treebank: a CoNLL-U file.
        config: the settings of a run, of which the parser's sizes and the batches' bounds are taken.
        model: a trained parser's folder in the place of an untrained one of these sizes.
        sentences: how many are read, the first.
        parse_words: words of a batch that is parsed.
        passes: over the sentences, of which medians are taken.
    """

    treebank: Path
    config: Path
    model: Path | None = None
    sentences: int = 4000
    parse_words: int = 5000
    passes: int = 3


def training_lines(work: Work, device: torch.device) -> Iterator[str]:
    """The tables."""
    sentences = [each.words for each in load_treebank([str(work.treebank)])][: work.sentences]
    config = load_config(work.config, ["--data.train", str(work.treebank)])
    torch.manual_seed(1)
    parser = Parser.from_pretrained(work.model) if work.model else Parser.build(config.model, sentences)
    parser.to(device)
    bounds = {"max_words": 1000, "max_squared": config.data.batch_squared}
    if isinstance(config.data.batch_words, int):
        bounds["max_words"] = config.data.batch_words
    training = _batches(sentences, bounds, shuffle=True)
    yield f"\n## Training and parsing: {Path(work.config).stem}, {len(sentences)} sentences\n"
    yield "| | words/s | trees' share | target | the rest |\n|:--|--:|--:|:--|:--|"
    words, now = sum(map(len, sentences)), waiting_clock(device)
    for precision in ("32", "bf16") if has_bfloat16(device) else ("32",):
        lower = precision == "bf16"
        autocast = partial(torch.autocast, device.type, torch.bfloat16) if lower else nullcontext
        objective = TreeLikelihood()
        optimizer = torch.optim.AdamW(parser.train().parameters(), lr=1e-9, fused=True)
        given = parser, training, objective, optimizer, autocast, now
        times = _median(partial(step_parts, *given), work.passes)
        seconds = _median(lambda g=given: {"all": whole_steps(*g)}, work.passes)["all"]
        yield _row(f"training step, {precision}", words / seconds, times)
        parser.eval().use_precision(precision)
        chunks = _batches(sentences, {"max_words": work.parse_words}, shuffle=False)
        times = _median(partial(parsing_parts, parser, chunks, lambda: None, nullcontext, now), work.passes)
        parse = partial(parser.parse, sentences, batch_words=work.parse_words)
        yield _row(f"parsing, {precision}", words / _seconds(parse, now, work.passes), times)
        parser.use_precision("32")
    yield from _graph_lines(parser, training, device, now)


def _batches(sentences: Sequence[Sentence], bounds: dict, *, shuffle: bool) -> Batches:
    places = BucketBatchSampler([*map(len, sentences)], **bounds, shuffle=shuffle, seed=1)
    return [[sentences[place] for place in own] for own in places]


def _median(run: Callable[[], Times], passes: int) -> Times:
    run()  # compiles
    found = [run() for _ in range(passes)]
    return {part: statistics.median(times[part] for times in found) for part in found[0]}


def _seconds(call: Callable[[], object], now: Callable[[], float], passes: int) -> float:
    def run() -> Times:
        start = now()
        call()
        return {"all": now() - start}

    return _median(run, passes)["all"]


def _row(name: str, speed: float, times: Times) -> str:
    total = sum(times.values())
    share = times["trees"] / total
    rest = ", ".join(f"{part} {seconds / total:.0%}" for part, seconds in times.items() if part not in ("trees",))
    return f"| {name} | {speed:,.0f} | {share:.1%} | {verdict_on_share(share)} | {rest} |"


def _graph_lines(parser: Parser, batches: Batches, device: torch.device, now: Callable[[], float]) -> Iterator[str]:
    """The loss of a batch and its gradient, asked for operation by operation and as one graph."""
    yield "\n## Training: a step as a CUDA graph\n"
    if device.type != "cuda":
        yield f"There are no graphs on {device.type}."
        return
    parser.train()
    batch = parser.collate(batches[len(batches) // 2])
    eager = partial(_loss_and_gradient, parser, batch)
    try:
        replay = _captured(eager)
    except (RuntimeError, ValueError) as error:  # something waited for the device
        yield f"A step could not be captured: {str(error).splitlines()[0]}"
        return
    times = {
        name: _seconds(lambda c=call: [c() for _ in range(REPEATS)], now, 5) / REPEATS
        for name, call in {"operation by operation": eager, "as a graph": replay}.items()
    }
    yield "| loss and gradient of a batch | ms |\n|:--|--:|"
    yield from (f"| {name} | {1e3 * seconds:.3f} |" for name, seconds in times.items())


def _loss_and_gradient(parser: Parser, batch: Batch) -> None:
    parser.zero_grad(set_to_none=False)
    parser.loss(batch, TreeLikelihood()).backward()


def _captured(step: Callable[[], None]) -> Callable[[], None]:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # as torch's manual asks for: what is made at first must be there
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay
