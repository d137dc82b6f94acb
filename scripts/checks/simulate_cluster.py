"""Parse a corpus on a Ray cluster of several nodes, on this machine, that are killed at random moments.

    pip install .[ray]
    python -m scripts.checks.simulate_cluster --treebank $EWT-train.conllu --output FILE

The nodes are processes of Ray's own test cluster, each with a CPU. One after another is killed by Ray's own means, and
another one takes its place. At the end the outputs are compared with those of `treeparse predict`, byte for byte, and
with the manifest.
"""

import argparse
import filecmp
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from scripts.support.corpora.commands import TREEPARSE, seconds, train_briefly
from scripts.support.corpora.scheduling import stragglers
from scripts.support.corpora.texts import distinct
from scripts.support.reports.markdown import Opening, report

from treeparse import Parser
from treeparse.corpus import CorpusRequest
from treeparse.corpus.cluster import RayCluster, parse_on_ray, read_manifest
from treeparse.corpus.cluster_files import StoredFile
from treeparse.corpus.sentences import CorpusObserver
from treeparse.data import read_conllu

OPENING = Opening(
    title="A corpus on nodes that die",
    measured="files parsed by `tiny` on a Ray cluster of local nodes, which are killed by Ray's own means.",
    on="sentences of a treebank, made distinct.",
    read="the log: when nodes were killed and files finished, and what the outputs were in the end.",
    repeat="python -m scripts.checks.simulate_cluster --treebank "
    "$TREEPARSE_TREEBANKS/UD_English-EWT/en_ewt-ud-train.conllu "
    "--output scripts/experiments/results/simulate_cluster.md",
)


class Log(CorpusObserver):
    """Lines with the seconds since the start; receives the reports of the work."""

    def __init__(self) -> None:
        self.lines, self.kills, self._started = list[str](), 0, time.perf_counter()

    def add(self, line: str) -> None:
        """Add a line."""
        self.lines.append(f"{time.perf_counter() - self._started:6.1f} s  {line}")
        print(self.lines[-1], flush=True)

    def start_output(self, number: int, count: int) -> None:
        """Report that an output is finished."""
        self.add(f"file {number} of {count} is finished")


@contextmanager
def dying_nodes(count: int, kills: int, log: Log, stream: random.Random) -> Iterator[str]:
    """Yield the address of a cluster whose nodes are killed at random moments, so many in all."""
    import ray  # pyright: ignore[reportMissingImports]
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    # Handlers at exit can't be set in a thread, and new nodes are started in one.
    head = {"num_cpus": 0, "include_dashboard": False}
    cluster: Any = Cluster(initialize_head=True, shutdown_at_exit=False, head_node_args=head)
    nodes, ended = [cluster.add_node(num_cpus=1) for _ in range(count)], threading.Event()

    def kill() -> None:
        for number in range(1, kills + 1):
            if ended.wait(stream.uniform(6, 16)):
                return
            victim = stream.randrange(count)
            cluster.remove_node(nodes[victim], allow_graceful=False)
            log.kills = number
            log.add(f"node {victim} is killed ({number} of {kills})")
            nodes[victim] = cluster.add_node(num_cpus=1)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield cluster.address
    finally:
        ended.set()
        killer.join()
        ray.shutdown()
        cluster.shutdown()


def simulate(treebank: Path, sentences: int, files: int, nodes: int, kills: int) -> Iterator[str]:
    """Yield the log and the comparison of outputs."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        run, known = folder / "run", [*read_conllu(treebank)]
        train_briefly("tiny", treebank, run)
        texts, share = distinct(known, sentences), -(-sentences // files)
        (folder / "in").mkdir()
        for number in range(files):
            text = "".join(islice(texts, share))
            (folder / "in" / f"{number:03}.conllu").write_text(text, encoding="utf-8")
        (folder / "one").mkdir()
        inputs = sorted((folder / "in").iterdir())
        alone = [*TREEPARSE, "predict", run, *inputs, "-o", folder / "one", "-q", "--threads=1"]
        log = Log()
        seconds([[*alone, "--jobs=2"]])
        log.add("two processes of one command are done; the cluster begins")
        request = CorpusRequest(inputs, f"{folder / 'out'}/")
        load = partial(Parser.from_pretrained, run, mapped=True)
        with dying_nodes(nodes, kills, log, random.Random(7)) as address:
            options = {"manifest": folder / "manifest.jsonl", "models": {"tiny": "for a test"}, "observer": log}
            summary = parse_on_ray(load, request, RayCluster(address), **options)
        yield from ("\n## The log\n", "```text", *log.lines, "```", "\n## What came of it\n")
        names = [path.name for path in inputs]
        same, *others = filecmp.cmpfiles(folder / "one", folder / "out", names, shallow=False)
        yield f"- {summary.sentences:,} sentences and {summary.words:,} words in {summary.seconds:,.0f} s"
        yield f"- nodes killed: {log.kills}"
        yield f"- files whose bytes are those of `treeparse predict --jobs 2`: {len(same)} of {len(names)}"
        yield f"- other files in the folder: {len({*(p.name for p in (folder / 'out').iterdir())} - {*names})}"
        lines = read_manifest(folder / "manifest.jsonl")
        right = [StoredFile(output).digest() == line["output_sha256"] for output, line in lines.items()]
        yield f"- lines of the manifest with the digest of their output: {sum(right)} of {len(names)}"
        yield f"- sentences by the manifest: {sum(line['sentences'] for line in lines.values()):,}"
        if any(others) or sum(right) != len(names) or summary.sentences != sentences:
            raise SystemExit("The outputs are not those of one machine.")
        if log.kills < kills:
            raise SystemExit(f"The work ended after {log.kills} of {kills} kills: give more --sentences.")


def main() -> None:
    """Run the simulation; print its log, and write it to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--treebank", type=Path, required=True, metavar="FILE")
    parser.add_argument("--sentences", type=int, default=1_000_000, metavar="N", help="(default: 1000000)")
    parser.add_argument("--files", type=int, default=100, metavar="N", help="(default: 100)")
    parser.add_argument("--nodes", type=int, default=3, metavar="N", help="(default: 3)")
    parser.add_argument("--kills", type=int, default=20, metavar="N", help="(default: 20)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="also write the log here, as markdown")
    args = parser.parse_args()
    lines = simulate(args.treebank, args.sentences, args.files, args.nodes, args.kills)
    report(chain([OPENING.text()], lines, stragglers()), args.output)


if __name__ == "__main__":
    main()
