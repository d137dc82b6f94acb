"""Tiny pretrained models, made on the spot with weights that are drawn: BERT over WordPiece, RoBERTa over bytes."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast, RobertaConfig, RobertaModel

from treeparse.batch import Batch
from treeparse.nn import TransformerConfig, TransformerEncoder
from treeparse.sentence import Sentence

SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "initializer_range": 0.3,  # so that words and their places matter
}
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = ["noun", "verb", "adj", "the", "##un", "##erb"]


def bert_folder(folder: Path, *, limit: int = 64, seed: int = 0, **sizes: Any) -> Path:
    """A BERT of that many positions, with the pooler that a parser has no use for."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = [*specials, *WORDS, *(f"{mark}{letter}" for mark in ("", "##") for letter in LETTERS + "0123456789")]
    vocabulary += [*".,-[]"]
    tokenizer = Tokenizer(models.WordPiece({word: place for place, word in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    _save_tokenizer(tokenizer, folder, model_max_length=limit, mask_token="[MASK]", **names)
    torch.manual_seed(seed)
    config = BertConfig(vocab_size=len(vocabulary), max_position_embeddings=limit, **(SIZES | sizes))
    BertModel(config).save_pretrained(folder)
    return folder


def roberta_folder(folder: Path, *, limit: int = 64, seed: int = 0, **sizes: Any) -> Path:
    """A RoBERTa, whose positions start behind that of padding, over pairs of bytes that see no space of their own."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(
        vocab_size=320, initial_alphabet=alphabet, special_tokens=specials, show_progress=False
    )
    tokenizer.train_from_iterator(["the noun and the verb of the noun"] * 3, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    names = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>", "cls_token": "<s>"}
    _save_tokenizer(tokenizer, folder, model_max_length=limit, sep_token="</s>", mask_token="<mask>", **names)
    torch.manual_seed(seed)
    sizes = SIZES | {"vocab_size": tokenizer.get_vocab_size(), "pad_token_id": 1} | sizes
    RobertaModel(RobertaConfig(max_position_embeddings=limit + 2, **sizes)).save_pretrained(folder)
    return folder


def encoder_and_batch(folder: Path, sentences: Sequence[Sentence], **settings: Any) -> tuple[TransformerEncoder, Batch]:
    """An encoder with the folder's weights, ready to parse, and a batch of the sentences for it."""
    config, features, initialise = TransformerConfig(model=str(folder), **settings).start([])
    torch.manual_seed(1)
    encoder = config.module(features)
    with torch.no_grad():
        initialise(encoder)
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    return encoder.eval(), Batch(lengths, torch.arange(len(lengths)), features(sentences))


def _save_tokenizer(tokenizer: Tokenizer, folder: Path, **settings: Any) -> None:
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **settings).save_pretrained(folder)
