"""The names of the values that users choose among."""

from typing import Literal, get_args

from treeparse.errors import TreeparseError, name_among

Decoder = Literal["best", "arcs_first", "nonprojective", "projective", "minimum_risk"]
DecoderName = Decoder | Literal["arcs-first", "minimum-risk"]  # the two spellings
DECODERS: tuple[Decoder, ...] = get_args(Decoder)
LISTING_DECODERS: tuple[Decoder, ...] = DECODERS[:-1]

Combination = Literal["scores", "log_probs", "marginals"]
COMBINATIONS: tuple[Combination, ...] = get_args(Combination)
LISTING_COMBINATIONS = COMBINATIONS[:2]

Precision = Literal["32", "bf16", "int8", "auto"]  # of the scores
PRECISIONS: tuple[Precision, ...] = get_args(Precision)

Tag = Literal["upos", "xpos", "feats"]
TAGS: tuple[Tag, ...] = get_args(Tag)

Auto = Literal["auto"]  # resolved from the treebank and the machine when training begins
Schedule = Literal["linear", "cosine", "constant"]  # of the learning rate
Algorithm = Literal["perceptron", "mira", "log_linear"]  # by which a linear model learns
Mixing = Literal["together", "turns"]  # of labelled and unlabelled sentences: in one batch, or batches take turns
CacheDtype = Literal["float16", "bfloat16", "float32"]

ListFormat = Literal["conllu", "jsonl"]


def decoder_named(name: str) -> Decoder:
    """Return the decoder of a name, with hyphen or underscore; raise for an unknown name."""
    return name_among(name, DECODERS, f"Unknown decoder {name!r:.60}")


def listing_decoder_named(name: str) -> Decoder:
    """Return the decoder of a name; raise for an unknown name, and for a decoder without a list of best trees."""
    decoder = decoder_named(name)
    if decoder not in LISTING_DECODERS:
        raise TreeparseError(
            f"The decoder {decoder} chooses one tree, it has no list of the best: choose best, nonprojective or "
            "projective."
        )
    return decoder


def combination_named(name: str) -> Combination:
    """Return the way to combine models of a name, with hyphen or underscore; raise for an unknown name."""
    return name_among(name, COMBINATIONS, f"Unknown way to combine models {name!r}")


def listing_combination_named(name: str) -> Combination:
    """Return the way to combine models of a name; raise for an unknown name, and for a way without lists of trees."""
    combination = combination_named(name)
    if combination not in LISTING_COMBINATIONS:
        raise TreeparseError(
            f"models combined by {combination} have one best tree, but no list of the best: choose "
            f"{' or '.join(LISTING_COMBINATIONS)}"
        )
    return combination


def precision_named(name: str) -> Precision:
    """Return the precision of a name; raise for an unknown name."""
    return name_among(name, PRECISIONS, f"Unknown precision {name!r:.60}")
