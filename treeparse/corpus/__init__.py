"""Corpora: files of sentences in, files of their trees out, each output whole or not at all.

    from treeparse import Parser
    from treeparse.corpus import CorpusRequest, parse_corpus

    parser = Parser.from_pretrained("runs/english")
    summary = parse_corpus(parser, CorpusRequest(["corpus/*.conllu.gz"], output="parsed/"))
    print(summary.sentences, summary.words)

A request names the inputs, the trees of every sentence (`TreeRequest`: its parse, its K best trees or K samples) and
the output format (`treeparse.corpus.writers`). `list_parts` splits a request into outputs with their inputs, and
`parse_parts` parses some of these parts: a program that runs many processes distributes the parts, or gives each
process the request with another ``shard``. `parse_with_jobs` parses them in several processes, and
`treeparse.corpus.cluster.parse_on_ray` on a cluster. `parse_documents` is for pipelines of others, whose texts are in
memory.
"""

from treeparse.corpus.corpus_parsing import parse_corpus, parse_documents, parse_parts
from treeparse.corpus.processes import parse_with_jobs
from treeparse.corpus.readers import Reader, ReaderOptions
from treeparse.corpus.request import CorpusPart, CorpusRequest, list_parts
from treeparse.corpus.sentences import CorpusObserver, CorpusSummary
from treeparse.corpus.writers import FileWriter, Writer, WriterOptions
from treeparse.model import TreeRequest

__all__ = [
    "CorpusObserver",
    "CorpusPart",
    "CorpusRequest",
    "CorpusSummary",
    "FileWriter",
    "Reader",
    "ReaderOptions",
    "TreeRequest",
    "Writer",
    "WriterOptions",
    "list_parts",
    "parse_corpus",
    "parse_documents",
    "parse_parts",
    "parse_with_jobs",
]
