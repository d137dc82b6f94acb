"""A transformer of all-MiniLM-L6-v2's size whose weights are drawn, for measurements of time."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

from treeparse.data.conllu import ConlluSentence

SIZES: dict[str, Any] = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
}
PIECES = 8000  # learned from a treebank so few give about as many pieces a word as the model's own 30,522 in new text


def random_minilm(folder: Path, sentences: Iterable[ConlluSentence]) -> Path:
    """Write the network and a tokenizer with pieces of the sentences' words to a folder."""
    pieces = BertWordPieceTokenizer()
    pieces.train_from_iterator((" ".join(each.words.forms) for each in sentences), PIECES, show_progress=False)
    folder.mkdir(parents=True)
    pieces.save(str(folder / "tokenizer.json"))
    names = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "pad", "cls", "sep", "mask")}
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"), model_max_length=512, **names)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    BertModel(BertConfig(vocab_size=30522, **SIZES)).save_pretrained(folder)
    return folder
