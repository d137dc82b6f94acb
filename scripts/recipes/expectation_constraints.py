"""Generalised expectations: a model that is told rates instead of trees (Druck, Mann and McCallum 2009; [Exp] §6.4).

The loss is the squared distance of expected rates ("95% of adpositions hang from a noun") to targets; no tree is seen.
The model is a table of scores by the tags of head and dependent; a network's scores would do as well.
"""

import demo
import torch
from torch.nn.utils.rnn import pad_sequence

from treeparse import NonProjectiveCRF, Sentence

RULES = {("DET", "NOUN"): 1.0, ("ADP", "NOUN"): 0.95, ("ADJ", "NOUN"): 0.95, ("AUX", "VERB"): 0.9}  # word, head
RULES |= {("PRON", "VERB"): 0.7, ("NOUN", "VERB"): 0.7, ("VERB", "ROOT"): 0.6}


def learn(sentences: list[Sentence], steps: int = 100) -> list[list[float]]:
    """Draw expected rates to their targets; the rates before every step."""
    columns = [("ROOT", *(sentence.upos or ())) for sentence in sentences]
    names = ["", *sorted({tag for column in columns for tag in column})]  # the first one pads
    tags = pad_sequence([torch.tensor([*map(names.index, column)]) for column in columns], batch_first=True)
    is_tag = torch.nn.functional.one_hot(tags).float()
    pairs = [(is_tag[:, :, None, names.index(head)], is_tag[:, None, :, names.index(word)]) for word, head in RULES]
    arcs = torch.stack([head * word for head, word in pairs], -1)  # (B, n+1, n+1, rules)
    words, targets, found = arcs.amax(1).sum((0, 1)), torch.tensor([*RULES.values()]), []
    optimizer = torch.optim.Adam([table := torch.zeros(len(names), len(names), requires_grad=True)], lr=0.1)
    for _ in range(steps):
        trees = NonProjectiveCRF(table[tags[:, :, None], tags[:, None, :]], (tags > 0).sum(1) - 1)
        found.append(rates := trees.expectation(arcs).sum(0) / words)
        optimizer.zero_grad()
        (rates - targets).square().sum().backward()
        optimizer.step()
    return torch.stack(found).tolist()


if __name__ == "__main__":
    first, *_, last = learn(demo.sentences()[:100])
    for (word, head), *rates in zip(RULES, first, last, RULES.values(), strict=True):
        print("{} from {}: {:.2f} at first, {:.2f} in the end, told {}".format(word, head, *rates))
