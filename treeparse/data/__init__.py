"""CoNLL-U, n-best lists, treebanks, vocabularies and batches."""

from treeparse.data.conllu import ConlluSentence as ConlluSentence
from treeparse.data.conllu import load_treebank as load_treebank
from treeparse.data.conllu import read_conllu as read_conllu
from treeparse.data.conllu import scan_conllu as scan_conllu
from treeparse.data.conllu import write_conllu as write_conllu
from treeparse.data.files import expand_paths as expand_paths
from treeparse.data.files import open_input as open_input
from treeparse.data.nbest.files import NBestList as NBestList
from treeparse.data.nbest.files import read_nbest as read_nbest
from treeparse.data.nbest.files import write_nbest as write_nbest
from treeparse.data.outputs import atomic_output as atomic_output
from treeparse.data.outputs import atomic_write as atomic_write
from treeparse.data.text.tokenised import read_text as read_text
from treeparse.data.validation import TreeCheck as TreeCheck
