"""Lists of parses for tests: random trees, and figures of one's own."""

import math
import random
from collections.abc import Sequence

from treeparse.data.conllu import ConlluSentence
from treeparse.data.parses import NBestList, Parse
from treeparse.sentence import tree_problem

LABELS = ("root", "nsubj", "obj", "nmod", "nmod:poss", "conj")


def random_heads(words: int, stream: random.Random) -> tuple[int, ...]:
    """The heads of a tree with one root, any of them."""
    while True:
        heads = tuple(stream.randrange(words + 1) for _ in range(words))
        if tree_problem(heads) is None:
            return heads


def random_list(words: int, parses: int, stream: random.Random, *, forms: Sequence[str] | None = None) -> NBestList:
    """Different trees or not, as it comes, with log probabilities of 1 in all, most probable first."""
    tokens = tuple(forms or (f"w{stream.randrange(9)}" for _ in range(words)))
    shares = sorted((stream.random() for _ in range(parses)), reverse=True)
    trees = [random_heads(words, stream) for _ in range(parses)]
    return nbest_list(
        tokens,
        [
            (heads, [stream.choice(LABELS) for _ in heads], math.log(s / sum(shares)))
            for heads, s in zip(trees, shares, strict=True)
        ],
    )


def nbest_list(
    tokens: Sequence[str], parses: Sequence[tuple[Sequence[int], Sequence[str], float]], sent_id: str = "s"
) -> NBestList:
    """A list from heads, labels and log probability of each parse."""
    sentence = ConlluSentence.from_forms(tokens, sent_id=sent_id)
    made = (Parse(tuple(tokens), tuple(h), tuple(labels), log_prob, log_prob) for h, labels, log_prob in parses)
    return NBestList(sentence, tuple(made))
