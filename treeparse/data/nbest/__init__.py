"""N-best lists in files: CoNLL-U with one block a tree, or JSONL with one object a sentence."""

from treeparse.data.nbest.files import NBestList as NBestList
from treeparse.data.nbest.files import read_nbest as read_nbest
from treeparse.data.nbest.files import write_nbest as write_nbest
