"""CoNLL-U, n-best lists, treebanks, vocabularies and batches."""

from typing import TYPE_CHECKING

from treeparse.data.conllu import ConlluSentence, load_treebank, read_conllu, scan_conllu, write_conllu
from treeparse.data.files import expand_paths, open_input
from treeparse.data.nbest import NBestList, read_nbest, write_nbest
from treeparse.data.outputs import atomic_output, atomic_write
from treeparse.data.tokenised import read_text
from treeparse.data.validation import TreeCheck
from treeparse.lazy import names_on_demand

if TYPE_CHECKING:
    from treeparse.batch import Batch
    from treeparse.data.padded_sentences import PaddedSentences, Vocabularies, pad

__all__ = [
    "Batch",
    "ConlluSentence",
    "NBestList",
    "PaddedSentences",
    "TreeCheck",
    "Vocabularies",
    "atomic_output",
    "atomic_write",
    "expand_paths",
    "load_treebank",
    "open_input",
    "pad",
    "read_conllu",
    "read_nbest",
    "read_text",
    "scan_conllu",
    "write_conllu",
    "write_nbest",
]
# Files are read without torch.
__getattr__, __dir__ = names_on_demand(
    __name__,
    {"treeparse.batch": "Batch", "treeparse.data.padded_sentences": "PaddedSentences Vocabularies pad"},
)
