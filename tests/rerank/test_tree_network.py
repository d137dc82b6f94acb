"""The Tree-LSTM over shared subtrees, against one tree after the other and node by node."""

import random

import pytest
import torch
from helpers.nbest_lists import LABELS, nbest_list, random_list
from torch import Tensor

from treeparse.batch import Batch
from treeparse.data.parses import NBestList, Parse
from treeparse.nn import BiLSTMConfig
from treeparse.rerank.tree_network import FARTHEST, TreeNetwork, TreeNetworkConfig
from treeparse.sentence import Sentence

ENCODER = BiLSTMConfig(min_count=1, word_size=6, char_size=3, char_filters=3, char_widths=(2,), hidden_size=5, layers=1)


@pytest.fixture(scope="module")
def network() -> TreeNetwork:
    torch.manual_seed(3)
    words = Sentence(tuple(f"w{number}" for number in range(9)), heads=(0, *[1] * 8), labels=(*LABELS, *["conj"] * 3))
    made = TreeNetwork.build(TreeNetworkConfig(ENCODER, size=7, label_size=4), [words]).eval()
    for weights in made.parameters():
        torch.nn.init.normal_(weights, std=0.5)
    return made


def by_recursion(network: TreeNetwork, nbest: NBestList) -> list[float]:
    """The same from the equations, for each tree by itself."""
    sentence = nbest.sentence.words
    assert network.features is not None and network.encoder is not None
    batch = Batch(torch.tensor([len(sentence)]), torch.tensor([0]), network.features([sentence]), sentences=(sentence,))
    [encoded] = network.encoder(batch)
    scores = []
    for parse in nbest.parses:

        def subtree(word: int, parse: Parse = parse) -> tuple[Tensor, Tensor]:
            lstm, label = network.trees, torch.tensor(network.labels.index(parse.labels[word - 1]))
            read = torch.cat([network.words(encoded[word]), network.label_vectors(label)])
            enter, leave, update, forget = lstm.inputs(read).chunk(4)
            cell = torch.zeros(7)
            dependents = [w for w, head in enumerate(parse.heads, 1) if head == word]
            rows = [w for w in reversed(dependents) if w < word], [w for w in dependents if w > word]
            for side, row in enumerate(rows):
                before = torch.zeros(7)
                for dependent in row:
                    vector, carried = subtree(dependent)
                    said = torch.relu(lstm.neighbours[side](torch.cat([vector, before])))
                    own = lstm.below[side](said).chunk(3)
                    enter, leave, update = enter + own[0], leave + own[1], update + own[2]
                    cell = cell + torch.sigmoid(lstm.forget(vector) + forget) * carried
                    before = vector
            cell = cell + torch.sigmoid(enter) * torch.tanh(update)
            return torch.sigmoid(leave) * torch.tanh(cell), cell

        total = 0.0
        for word, head in enumerate(parse.heads, 1):
            distance = torch.tensor(max(-FARTHEST, min(FARTHEST, word - head)) + FARTHEST)
            hidden = network.arc_head(encoded[head]) + network.arc_subtree(subtree(word)[0])
            total += float(network.score(torch.relu(hidden + network.distances(distance))))
        scores.append(total)
    return scores


@pytest.mark.parametrize("seed", range(6))
def test_scores_are_those_of_the_equations_but_for_a_constant(network: TreeNetwork, seed: int) -> None:
    nbest = random_list((2, 3, 4, 5, 6, 7)[seed], 6, random.Random(seed))
    with torch.inference_mode():
        found, expected = network([network.prepare(nbest)]).tolist(), by_recursion(network, nbest)
    assert [score - found[0] for score in found] == pytest.approx([s - expected[0] for s in expected], abs=1e-4)


def test_lists_are_scored_alike_together_and_alone(network: TreeNetwork) -> None:
    sizes = ((3, 4), (1, 1), (7, 5), (2, 3))
    items = [network.prepare(random_list(words, parses, random.Random(words))) for words, parses in sizes]
    with torch.inference_mode():
        together = network(items).tolist()
        assert together == pytest.approx([score for item in items for score in network([item]).tolist()], abs=1e-4)


def test_a_list_without_a_choice_and_an_unknown_label(network: TreeNetwork) -> None:
    tree = (0, 1), ("root", "never:seen")
    [score] = network([network.prepare(nbest_list("ab", [(*tree, -1.0)]))]).tolist()
    assert score == 0.0
    two = nbest_list("ab", [(*tree, -1.0), ((2, 0), ("obj", "root"), -2.0)])
    assert len(network([network.prepare(two)])) == 2


def test_gradients_reach_all_weights(network: TreeNetwork) -> None:
    items = [network.prepare(random_list(6, 5, random.Random(seed))) for seed in range(8)]
    network([*items]).square().sum().backward()
    silent = [name for name, weights in network.named_parameters() if weights.grad is None or not weights.grad.any()]
    network.zero_grad()
    assert [name for name in silent if not name.startswith("encoder.")] == []
