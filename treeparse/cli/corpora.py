"""Corpora on the command line: arguments of the commands that parse files, the progress bar and the closing line."""

import argparse
import gc
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from treeparse import rules
from treeparse.cli.common import (
    add_batch_words_argument,
    add_choice_argument,
    add_drop_empty_argument,
    add_output_argument,
    add_treebank_argument,
    checked_by,
    counted,
    modules_of_current_folder,
    positive,
)
from treeparse.cli.models import add_model_arguments, check_models, load_models, models_and_files, tokenizer_of
from treeparse.corpus.cluster import RayCluster, parse_on_ray
from treeparse.corpus.cluster_files import is_url
from treeparse.corpus.corpus_parsing import CHUNK, parse_parts
from treeparse.corpus.processes import parse_with_jobs
from treeparse.corpus.readers import READERS
from treeparse.corpus.request import CorpusPart, CorpusRequest, Shard, is_folder, list_parts
from treeparse.corpus.sentences import CorpusObserver, CorpusSummary
from treeparse.corpus.writers import WRITERS, FileWriter
from treeparse.errors import TreeparseError
from treeparse.model import Ensemble, Parser
from treeparse.model.folder import WEIGHTS, file_digest, local_folder, model_folder
from treeparse.model.inference.tree_request import TreeRequest
from treeparse.names import LISTING_DECODERS, listing_decoder_named
from treeparse.progress import Console, ParsingBar
from treeparse.rules import RuleSearch
from treeparse.rules.rules import OPENED
from treeparse.user_code import check_name

MANIFEST = "manifest.jsonl"  # in the folder of the outputs
_SHARD = re.compile(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,8})")
CHUNKS = """\
Sentences are read and parsed --chunk at a time. From a terminal, or with --chunk 1, each sentence is parsed once it is
complete: at its line end in text, at the blank line after it in CoNLL-U. A program that waits for each parse before it
sends the next sentence needs --chunk 1.

The same command writes the same bytes, with any --jobs. Other batches (--chunk, --batch-words) change the last digits
of scores: a printed probability by one in its last digit and, rarely, one of two trees that nearly tie."""
RAW_TEXT = """\
With --format text --tokenizer spacy:en each line is a paragraph of raw text, and spaCy's rules for a language split it
into sentences and words. Other tokenizers are a spaCy pipeline, such as spacy:en_core_web_sm, and Stanza, such as
stanza:en, which also knows multiword tokens. The words should be as in the treebank of the model. The output has
# text (in Unicode's NFC), SpaceAfter=No, # newpar, and as ids the line and the sentence in it, such as 3-2.

Documents are objects of JSON Lines, or rows of Parquet (pip install treeparse[corpus]). --text-column names what holds
the text, of which each line is read as a line of --format text. Ids of sentences begin with that of the document, from
--id-column or its number, which # newdoc id before its first sentence repeats."""
CONDITIONS = """\
--keep-heads keeps each HEAD and DEPREL of the input that is not _, and fills in the others; --within gives a word one
of the heads that its MISC names (Heads=2,5). Both are exact: probabilities are conditional on what is known. A sentence
that no tree fits is an error; --skip-invalid leaves it out.

--rules FILE finds only trees that satisfy rules: at most one subject of a head, no arguments of function words, a root
of a certain UPOS, no crossing arcs. --rules ud is a shipped file, which treeparse config rules/ud prints;
help("treeparse.rules.rule_files") lists all rules. The search is exact among the first --opened trees of a sentence. If
none of these satisfies the rules, the sentence gets its best tree. Trees of long sentences take longer: in a sentence
of N hundred words, a tree that breaks a rule counts as N x N of them (25 from 500 words, 100 from 1,000). The closing
line counts the sentences whose best tree broke a rule, the mended ones, and those not searched to the end. Rules do not
change probabilities."""
CORPORA = """\
If OUT is a folder (one that exists, or a name that ends in /), each input gets a file of its own name in it; inputs of
several folders keep the folders below the one that they share. A file appears once it is complete, and stays if a later
input is faulty; then the same command with --skip-existing parses the other inputs.

With --jobs N, N processes parse what this one reads and writes: the output is the same, and the model's weights are in
memory once. Each process imports torch first, which takes some seconds. A process that dies, as for want of memory,
ends the command; then the same command with --skip-existing parses the inputs without a file in the folder.

With --ray ADDRESS, the processes of a Ray cluster (pip install treeparse[ray]) parse whole files, each into its own in
the folder OUT; with --device cuda each has a GPU. IN and OUT may be URLs such as s3://bucket/*.conllu.gz. An output has
its name once it is complete and has a line in the manifest (counts, digests, seconds); the same command again parses
those that are missing. Faulty files are named in the end; the others have their outputs. All nodes need treeparse, the
model under the same path, and files that are no URLs under the same paths.

With --shard i/n, n processes or machines share the work, each with another i from 1 to n; they need not communicate.
With -o folder/ they share the files, by size. With one output each process parses a run of sentences of about equal
size in bytes: with -o part-$i.conllu, cat part-1.conllu part-2.conllu ... gives the whole. A shard may be empty. All
processes must read the same inputs, so write no output that the patterns of IN match. For example:
  treeparse COMMAND MODEL 'corpus/*.conllu' -o parsed/ --shard 2/4 --jobs 16 --threads 1    # on the second of four"""
PROBABILITIES = """\
--probabilities adds to each tree the probabilities of its arcs, and of arc and label together, among all trees of the
model (at temperature 1), as predict does: ArcProb and LabelProb in MISC, the comments tree_prob, exp(log_prob), and
entropy; in JSONL arc_probs, label_probs and entropy of each parse. Probabilities in the input are dropped."""


def parse_in_processes(
    models: Sequence[str],
    request: CorpusRequest,
    parts: Sequence[CorpusPart],
    observer: CorpusObserver,
    args: argparse.Namespace,
) -> CorpusSummary:
    """Parse in several processes; each one loads the models."""
    threads = args.threads or max(1, (os.cpu_count() or 1) // args.jobs)
    with modules_of_current_folder():  # in the processes, too
        return parse_with_jobs(_loader(models, args), request, parts, args.jobs, threads=threads, observer=observer)


def parse_on_cluster(
    models: Sequence[str], request: CorpusRequest, observer: CorpusObserver, args: argparse.Namespace
) -> CorpusSummary:
    """Parse on a Ray cluster; each actor loads the models."""
    if args.manifest is None and is_url(str(request.output)):
        raise TreeparseError(
            f"The manifest grows by lines, which the storage of {request.output} may not allow: name a file of this "
            "machine by --manifest."
        )
    folders = [os.path.abspath(local_folder(model)) for model in models]
    digests = {folder: file_digest(model_folder(folder) / WEIGHTS) for folder in folders}
    gpus = 1 if str(args.device or "").startswith("cuda") else 0
    cluster = RayCluster(args.ray, args.jobs, args.threads or 1, gpus)
    manifest = args.manifest or Path(request.output) / MANIFEST
    options = {"manifest": manifest, "models": digests, "observer": observer}
    return parse_on_ray(_loader(folders, args), request, cluster, **options)


def _loader(models: Sequence[str], args: argparse.Namespace) -> partial:
    quiet = argparse.Namespace(**{**vars(args), "quiet": True})
    return partial(load_models, [*models], quiet, mapped=True)


def add_arguments(parser: argparse.ArgumentParser, *, output: str, lists_of_best: bool = False) -> None:
    """Declare the arguments; ``output`` is the help of ``-o``, ``lists_of_best`` restricts ``--combine``."""
    parser.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="the folder of a model, or of its run; several parse as one; en comes with treeparse: it parses English",
    )
    parser.add_argument(
        "inputs",
        nargs="+",
        metavar="IN",
        help="files of sentences, plain or compressed (.gz, .bz2, .xz, .zst); globs; - for stdin",
    )
    add_output_argument(parser, output)
    meaning = (
        f"the input format ({', '.join(READERS)}), or the class path of a reader like mine.Reader (default: jsonl or "
        "parquet if the first IN ends so, otherwise conllu); a line of text is a tokenised sentence or, with "
        "--tokenizer, a paragraph of raw text; documents: see below"
    )
    check = partial(check_name, table=READERS, noun="input format")
    parser.add_argument("--format", type=checked_by(check), metavar="NAME", help=meaning)
    parser.add_argument(
        "--text-column",
        metavar="NAME",
        default="text",
        help="the key or column of jsonl or parquet that holds the text of a document (default: text)",
    )
    parser.add_argument("--id-column", metavar="NAME", help="the one that holds ids of documents (default: numbers)")
    parser.add_argument(
        "--tokenizer",
        metavar="NAME",
        help="split raw text by spacy:LANGUAGE, spacy:PIPELINE or stanza:LANGUAGE, which must be installed, see below "
        "(default: none; of the model en spacy:en, if spaCy is installed)",
    )
    add_drop_empty_argument(parser)
    parser.add_argument(
        "--skip-invalid",
        action="store_true",
        help="leave out and count faulty sentences, lines and documents; in a folder, empty files stay empty",
    )
    faults = "list what is left out in a JSON Lines file with file, line and problem; a folder if OUT is one"
    parser.add_argument("--faults", metavar="FILE", help=f"{faults} (includes --skip-invalid)")
    parser.add_argument("--max-words", type=positive, metavar="N", help="leave out and count sentences over N words")
    parser.add_argument("--shard", type=_shard, metavar="I/N", help="parse the I-th of N parts of the input, see below")
    parser.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help="parse in N processes, with the same output (default: 1, of a cluster as many as it has room for); each "
        "has --threads (default: its share of the CPUs, in a cluster 1)",
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help="parse the files on a Ray cluster: its address, auto for this machine's, or local to start one, see below",
    )
    parser.add_argument(
        "--manifest",
        metavar="FILE",
        help="of --ray: where a line for each output is written (default: manifest.jsonl in the folder of the outputs)",
    )
    parser.add_argument("--skip-existing", action="store_true", help="leave existing output files as they are")
    add_batch_words_argument(parser)
    add_treebank_argument(parser)
    parser.add_argument("--chunk", type=positive, metavar="N", help=f"sentences read ahead (default: {CHUNK})")
    parser.add_argument("--keep-heads", action="store_true", help="keep HEAD and DEPREL that are not _, see below")
    parser.add_argument("--within", action="store_true", help="choose one of the heads that MISC names (Heads=2,5)")
    parser.add_argument(
        "--rules", metavar="FILE", help="rules that trees must satisfy: a YAML file or a shipped name, see below"
    )
    parser.add_argument(
        "--opened",
        type=positive,
        metavar="N",
        help=f"the most trees of a sentence to test against rules (default: {OPENED:,})",
    )
    add_model_arguments(parser, lists_of_best=lists_of_best)


def add_list_arguments(parser: argparse.ArgumentParser, *, k: str, decoder: str, best: bool) -> None:
    """Declare the arguments of lists of trees, with the help of ``-k`` and ``--decoder``; ``best``: no samples."""
    output = "the lists; .gz, .bz2, .xz or .zst compresses; a folder gets a file an input"
    add_arguments(parser, output=output, lists_of_best=best)
    parser.add_argument("-k", type=positive, required=True, metavar="K", help=k)
    add_output_format_argument(parser)
    parser.add_argument("--probabilities", action="store_true", help="write the probabilities of arcs and labels")
    add_choice_argument(parser, "--decoder", listing_decoder_named, LISTING_DECODERS, help=decoder)


def add_output_format_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--output-format``."""
    meaning = (
        f"the output format ({', '.join(WRITERS)}), or the class path of a writer like mine.Writer (default: jsonl "
        "or parquet if OUT ends in .jsonl, .jsonl.gz, .parquet and the like, otherwise conllu)"
    )
    check = partial(check_name, table=WRITERS, noun="output format")
    parser.add_argument("--output-format", type=checked_by(check), metavar="NAME", help=meaning)


def _shard(text: str) -> Shard:
    match = _SHARD.fullmatch(text)
    if not match or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f"must be i/n with i from 1 to n, such as 2/4, got {text!r}")
    return Shard(int(match[1]), int(match[2]))


def parse_files(
    args: argparse.Namespace,
    trees: TreeRequest,
    output_format: str | FileWriter | None,
    *,
    tags: bool = False,
    also_read: Sequence[str] = (),
    prepare: Callable[[Parser | Ensemble, TreeRequest], TreeRequest] | None = None,
) -> int:
    """Parse the sentences of all files and write them; show a progress bar, and the counts at the end.

    Args:
        args: the command's arguments, ``add_arguments``'s among them.
        trees: the trees of every sentence, without the options that the arguments hold.
        output_format: a format, a class path or a writer; None chooses by the name of the output.
        tags: whether the tags that the model predicts are written.
        also_read: further files and globs that the command reads.
        prepare: completes the trees once the model is loaded; None if they are complete.
    """
    models, inputs = models_and_files([*args.models, *args.inputs])
    if args.tokenizer is None and args.format == "text":
        args.tokenizer = tokenizer_of(models)
    with modules_of_current_folder():
        request = CorpusRequest(
            inputs=inputs,
            output_format=output_format,
            trees=replace(trees, **_named_options(args, "batch_words", "keep_heads", "within", "treebank")),
            tags=tags,
            chunk=args.chunk or (1 if "-" in inputs and sys.stdin.isatty() else None),
            skip_invalid=args.skip_invalid or args.faults is not None,
            **_named_options(args, "output", "format", "text_column", "id_column", "tokenizer", "drop_empty", "faults"),
            **_named_options(args, "max_words", "shard", "skip_existing", "overwrite_input"),
        )
        request.writer()
    parts = [] if args.ray else list_parts(request, also_read=also_read, others=[*models, args.rules])
    check_models(models, args)
    rules = read_rules(args)
    request = replace(request, trees=replace(request.trees, rules=rules))
    with closing(_Progress(args)) as observer:
        if args.ray or (args.jobs or 1) > 1:
            if prepare is not None:
                request = replace(request, trees=prepare(load_models(models, args), request.trees))
            if args.ray:
                summary = parse_on_cluster(models, request, observer, args)
            else:
                summary = parse_in_processes(models, request, parts, observer, args)
        else:
            tokenizer = request.load_tokenizer()
            model = load_models(models, args)
            trees = request.trees if prepare is None else prepare(model, request.trees)
            request = replace(request, trees=trees, tokenizer=tokenizer)
            with _uncollected():
                summary = parse_parts(model, request, parts, observer=observer)
    Console(quiet=args.quiet).remark(closing_line(summary, request))
    return 0


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep the garbage collector from the million objects of torch and the model, which takes 5% of the time."""
    if gc.get_freeze_count():  # the program that runs this command has done so, and would lose it
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _named_options(args: argparse.Namespace, *names: str) -> dict[str, Any]:
    return {name: getattr(args, name) for name in names}


def read_rules(args: argparse.Namespace) -> RuleSearch | None:
    """Return the rules of the arguments, with the bound of the search; raise for a faulty file of rules."""
    if args.rules is None:
        if args.opened is not None:
            raise TreeparseError("--opened bounds the search for trees that satisfy rules: give --rules, too.")
        return None
    return RuleSearch(rules.read_rules(args.rules), args.opened or OPENED)


class _Progress(CorpusObserver):
    """Shows a progress bar, warnings and failures on standard error."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._console = Console(quiet=args.quiet)
        self._has_folder = is_folder(args.output)
        self._hidden = args.quiet or (args.output == "-" and sys.stdout.isatty())
        self._bar = ParsingBar(None, hidden=True)  # until the size of the input is known

    def close(self) -> None:
        self._bar.close()

    def start(self, size: int | None) -> None:
        self._bar = ParsingBar(size, hidden=self._hidden)

    def start_output(self, number: int, count: int) -> None:
        if self._has_folder:
            self._bar.say(f"file {number:,}/{count:,}")

    def advance(self, sentences: int, words: int, size: int) -> None:
        if not self._bar.disable:
            self._bar.advance(sentences, words, size)

    def warn(self, message: str) -> None:
        self._console.remark(f"warning: {message}")

    def fail(self, done: int, count: int) -> None:
        if self._has_folder:
            files = f"{done:,} of {counted(count, 'file')} done"
            self._console.remark(f"{files}; the same command with --skip-existing does the others")


def closing_line(summary: CorpusSummary, request: CorpusRequest) -> str:
    """Return the counts of what was parsed and left out, as a line."""
    speed = f"{summary.words / summary.seconds:,.0f} words/s"
    sums = [counted(summary.sentences, "sentence"), counted(summary.words, "word"), speed]
    if summary.outputs and request.has_folder:
        sums.insert(0, counted(summary.outputs, "file"))
    has = "has" if summary.short_lists == 1 else "have"
    notes = [
        (summary.short_lists, "sentence", f"{has} fewer than {request.trees.k:,} trees"),
        (summary.invalid_sentences, "sentence", "left out"),
        (summary.long_sentences, "sentence", f"of more than {request.max_words or 0:,} words left out"),
        (summary.empty_files, "file", "without a sentence"),
        (summary.existing_outputs, "output", "there already"),
    ]
    remarks = [f"{counted(count, noun)} {remark}" for count, noun, remark in notes if count]
    return "; ".join(filter(None, (", ".join(sums), rules_remark(request.trees.search), *remarks)))


def rules_remark(search: RuleSearch | None) -> str:
    """Return how many sentences broke a rule and were mended; nothing without rules."""
    if search is None:
        return ""
    tally = search.tally
    remark = f"{counted(tally.broken, 'sentence')} broke a rule, {tally.mended:,} mended"
    if tally.unfinished:
        remark += f", {counted(tally.unfinished, 'sentence')} not searched to the end"
    if impossible := tally.left - tally.unfinished:
        remark += f", {counted(impossible, 'sentence')} without such a tree"
    if tally.drawn:
        remark += f", {tally.accepted / tally.drawn:.1%} of {counted(tally.drawn, 'tree')} drawn accepted"
    return remark
