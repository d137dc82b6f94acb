"""The bill of a large corpus: words a second of a core, and what 10^9 words cost; where the next limit lies.

    python -m scripts.benchmarks.bench_corpus --treebank $EWT-train.conllu --output FILE

Models are trained for an epoch, since speed does not need a good one, with the configs of --models; minilm is
`transformer` over a network of all-MiniLM-L6-v2's size. The corpus has the sentences of the treebank again and again,
made distinct by a number in the place of a word's end. treeparse's figures are those of whole commands, their start
included; UDPipe 1 (pip install ufal.udpipe) and spaCy are called in this process, without it.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from filecmp import cmp
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from scripts.support.corpora.commands import TREEPARSE, seconds, train_briefly
from scripts.support.corpora.memory import Memory, watched_memory
from scripts.support.corpora.minilm import random_minilm
from scripts.support.corpora.parts import parts
from scripts.support.corpora.texts import distinct
from scripts.support.peers.corpora import PEERS
from scripts.support.reports.markdown import Opening, report

from treeparse.data import ConlluSentence, read_conllu

PRICE = 0.04  # dollars of a core-hour, as clouds ask for in 2026
WORDS = 10**9
DEPCC = 2.5e11  # tokens of DepCC (Panchenko et al. 2018)
JOBS = 2
MODELS = ["linear", "tiny", "tiny:int8", "fast", "fast:int8", "bilstm@8000", "minilm@2000"]
OPENING = Opening(
    title="What parsing a large corpus costs",
    measured="whole `treeparse predict` commands on CoNLL-U, one thread a process, and peers' own parsers.",
    on="sentences of a treebank, made distinct.",
    read=f"words a second of one core, the start of the program included; dollars at ${PRICE} a core-hour.",
    repeat="python -m scripts.benchmarks.bench_corpus --treebank "
    "$TREEPARSE_TREEBANKS/UD_English-EWT/en_ewt-ud-train.conllu "
    "--output scripts/experiments/results/bench_corpus.md",
    details="Parsing takes as long whatever the weights are, so the models are trained for one epoch.",
)


@dataclass(frozen=True)
class Model:
    """A config, the precision it computes in and how many sentences it parses, read from ``NAME[:PRECISION][@N]``."""

    config: str
    precision: str
    sentences: int

    @classmethod
    def named(cls, text: str, sentences: int) -> "Model":
        """Read the name."""
        found = re.fullmatch(r"(\w+)(?::(\w+))?(?:@(\d+))?", text)
        if found is None:
            raise argparse.ArgumentTypeError(f"a model must be NAME[:PRECISION][@SENTENCES], got {text!r}")
        return cls(found[1], found[2] or "32", int(found[3] or sentences))

    def __str__(self) -> str:
        return f"`{self.config}`{'' if self.precision == '32' else f', {self.precision}'}"


class Corpus:
    """A folder with files of as many sentences as asked for, and models that were trained briefly."""

    def __init__(self, folder: Path, treebank: Path) -> None:
        self.folder, self.treebank, self.sentences = folder, treebank, [*read_conllu(treebank)]

    def file(self, sentences: int) -> Path:
        """A file of so many distinct sentences."""
        path = self.folder / f"{sentences}.conllu"
        if not path.exists():
            with path.open("w", encoding="utf-8") as stream:
                stream.writelines(distinct(self.sentences, sentences))
        return path

    def words(self, sentences: int) -> int:
        """How many words such a file has."""
        turns, rest = divmod(sentences, len(self.sentences))
        lengths = [len(each.words) for each in self.sentences]
        return turns * sum(lengths) + sum(lengths[:rest])

    def model(self, config: str) -> Path:
        """A run of a config."""
        run = self.folder / config
        if run.exists():
            return run
        if config == "minilm":
            encoder = random_minilm(self.folder / "encoder", self.sentences)
            train_briefly("transformer", self.file(1000), run, f"--model.encoder.model={encoder}")
        else:
            train_briefly(config, self.file(1000) if config == "bilstm" else self.treebank, run)
        return run

    def command(self, model: Model, output: str, *options: str) -> list[object]:
        """The command that parses with a model."""
        inputs = ["predict", self.model(model.config), self.file(model.sentences), "-o", self.folder / output]
        return [*TREEPARSE, *inputs, "--threads=1", "-q", f"--precision={model.precision}", *options]


def bill(corpus: Corpus, models: Sequence[Model]) -> Iterator[str]:
    """Speeds and costs of models and peers."""
    yield "\n## Words a second and dollars\n"
    yield "| parser | sentences | words/s of a core | $ for 10^9 words | $ for DepCC |"
    yield "|:--|--:|--:|--:|--:|"

    def row(title: str, sentences: int, elapsed: float) -> str:
        speed = corpus.words(sentences) / elapsed
        dollars = PRICE * WORDS / speed / 3600
        return f"| {title} | {sentences:,} | {speed:,.0f} | {dollars:,.2f} | {dollars * DEPCC / WORDS:,.0f} |"

    for model in models:
        command = corpus.command(model, "alone.conllu")
        yield row(str(model), model.sentences, seconds([command]))
    for peer in PEERS:
        prepared = peer.prepare([*read_conllu(corpus.file(1000))])
        if prepared is None:
            yield f"| {peer.name} | not installed: `pip install {peer.package}` | | | |"
        else:
            yield row(peer.name, peer.sentences, prepared(corpus.file(peer.sentences), corpus.folder / "peer"))


def sharing(corpus: Corpus, models: Sequence[Model]) -> Iterator[str]:
    """Two processes of one command beside two commands that know nothing of each other, and one."""
    yield f"\n## {JOBS} processes of one command (`--jobs {JOBS}`)\n"
    yield "Beside so many commands that parse a part each (`--shard`). Memory is that of all processes, what they share"
    yield "counted once (PSS), in MB: after a quarter and a half of the time, at the end, and of the weights alone.\n"
    yield f"| parser | sentences | words/s | over {JOBS} commands | bytes of one process | memory | weights, file |"
    yield "|:--|--:|--:|--:|:--|--:|--:|"
    for model in models:
        seconds([corpus.command(model, "alone.conllu")])
        shards = [corpus.command(model, f"{i}.conllu", f"--shard={i}/{JOBS}") for i in range(1, JOBS + 1)]
        apart = seconds(shards)
        with watched_memory("model.safetensors") as memory:
            together = seconds([corpus.command(model, "jobs.conllu", f"--jobs={JOBS}")])
        same = cmp(corpus.folder / "alone.conllu", corpus.folder / "jobs.conllu", shallow=False)
        speed = corpus.words(model.sentences) / together
        file = corpus.model(model.config) / "model" / "model.safetensors"
        yield (
            f"| {model} | {model.sentences:,} | {speed:,.0f} | {apart / together:.2f} | {'yes' if same else 'NO'} | "
            f"{_over_time(memory)} | {_megabytes(max(each.file for each in memory))}, "
            f"{_megabytes(file.stat().st_size)} |"
        )


def _over_time(memory: Sequence[Memory]) -> str:
    last = len(memory) - 2  # the processes of the last sample may be ending
    return ", ".join(_megabytes(memory[last * part // 4].all) for part in (1, 2, 4))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f}" if size > 1e7 else f"{size / 1e6:.1f}"


def main() -> None:
    """Print the tables, and write them to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebank", type=Path, required=True, metavar="FILE")
    parser.add_argument("--sentences", type=int, default=40_000, metavar="N", help="of a model (default: 40000)")
    parser.add_argument("--models", nargs="+", default=MODELS, metavar="NAME[:PRECISION][@N]")
    sharing_help = "models that parse in several processes, too (default: tiny@1000000 fast)"
    parser.add_argument("--sharing", nargs="*", default=["tiny@1000000", "fast"], metavar="MODEL", help=sharing_help)
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the tables here, as markdown")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        corpus = Corpus(Path(folder), args.treebank)
        models, shared = ([Model.named(each, args.sentences) for each in part] for part in (args.models, args.sharing))
        known: list[ConlluSentence] = corpus.sentences
        tables = (bill(corpus, models), parts(corpus.model("tiny"), known, corpus.folder), sharing(corpus, shared))
        report(chain([OPENING.text()], *tables), args.output)


if __name__ == "__main__":
    main()
