"""CoNLL-U, n-best lists, treebanks, vocabularies and batches."""

from treeparse.data.conllu import ConlluSentence, load_treebank, read_conllu, scan_conllu, write_conllu
from treeparse.data.files import expand_paths, open_input
from treeparse.data.nbest.list_files import NBestList, read_nbest, write_nbest
from treeparse.data.outputs import atomic_output, atomic_write
from treeparse.data.text.tokenised import read_text
from treeparse.data.validation import TreeCheck

__all__ = [
    "ConlluSentence",
    "NBestList",
    "TreeCheck",
    "atomic_output",
    "atomic_write",
    "expand_paths",
    "load_treebank",
    "open_input",
    "read_conllu",
    "read_nbest",
    "read_text",
    "scan_conllu",
    "write_conllu",
    "write_nbest",
]
