"""CoNLL-U, n-best lists, treebanks, vocabularies and batches."""

from .conllu import ConlluSentence as ConlluSentence
from .conllu import read_conllu as read_conllu
from .conllu import read_text as read_text
from .conllu import scan_conllu as scan_conllu
from .conllu import write_conllu as write_conllu
from .files import atomic_output as atomic_output
from .files import atomic_write as atomic_write
from .files import expand_paths as expand_paths
from .files import open_input as open_input
from .nbest import NBestList as NBestList
from .nbest import read_nbest as read_nbest
from .nbest import write_nbest as write_nbest
from .treebank import load_treebank as load_treebank
