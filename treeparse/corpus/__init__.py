"""Corpora: files of sentences in, files of their trees out, each output whole or not at all.

    from treeparse import Parser
    from treeparse.corpus import CorpusRequest, parse_corpus

    parser = Parser.from_pretrained("runs/english")
    summary = parse_corpus(parser, CorpusRequest(["corpus/*.conllu.gz"], output="parsed/"))
    print(summary.sentences, summary.words)

A request says what is read, which trees every sentence gets (`TreeRequest`: its parse, its K best trees or K samples)
and in which format they are written (`treeparse.corpus.writers`). `list_parts` splits a request into outputs with their
inputs, and `parse_parts` does some of them: whatever runs many processes hands out parts, or gives each process the
request with another ``shard``.
"""

from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand

if TYPE_CHECKING:
    from treeparse.corpus.parsing import parse_corpus as parse_corpus
    from treeparse.corpus.parsing import parse_parts as parse_parts
    from treeparse.corpus.progress import CorpusObserver as CorpusObserver
    from treeparse.corpus.progress import CorpusSummary as CorpusSummary
    from treeparse.corpus.request import CorpusPart as CorpusPart
    from treeparse.corpus.request import CorpusRequest as CorpusRequest
    from treeparse.corpus.request import list_parts as list_parts
    from treeparse.corpus.trees import TreeRequest as TreeRequest
    from treeparse.corpus.writers import Writer as Writer
    from treeparse.corpus.writers import WriterOptions as WriterOptions

_HOMES = {
    "CorpusObserver": "treeparse.corpus.progress",
    "CorpusPart": "treeparse.corpus.request",
    "CorpusRequest": "treeparse.corpus.request",
    "CorpusSummary": "treeparse.corpus.progress",
    "TreeRequest": "treeparse.corpus.trees",
    "Writer": "treeparse.corpus.writers",
    "WriterOptions": "treeparse.corpus.writers",
    "list_parts": "treeparse.corpus.request",
    "parse_corpus": "treeparse.corpus.parsing",
    "parse_parts": "treeparse.corpus.parsing",
}

__getattr__ = names_on_demand(__name__, _HOMES)
