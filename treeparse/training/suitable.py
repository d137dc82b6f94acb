"""Whether there are the sentences that an objective learns from, before a run trains for hours without them."""

from collections.abc import Sequence

from treeparse.data.features.indexer import has_tree
from treeparse.errors import TreeparseError
from treeparse.objectives import Objective
from treeparse.sentence import Sentence


def check_objective(objective: Objective, train: Sequence[Sentence], *, unlabelled: bool) -> None:
    """Raise where an objective, or a term of it, is for sentences that are not there, or none for those that are.

    Args:
        objective: the loss.
        train: the training sentences.
        unlabelled: whether there is unlabelled text besides.
    """
    kinds, have_tree = objective.kinds(), [has_tree(sentence) for sentence in train]
    learns = {kind: [name for name, each in kinds.items() if each == kind] for kind in ("labelled", "unlabelled")}
    if learns["labelled"] and not any(have_tree):
        raise TreeparseError(
            f"The objective {learns['labelled'][0]} learns from trees, but data.train has none: every HEAD is _. Leave "
            "it out, for one that needs none, such as Entropy, or name files with trees."
        )
    if unlabelled and len(learns["labelled"]) == len(kinds):
        raise TreeparseError(
            f"The objective {learns['labelled'][0]} learns from trees alone, so that data.unlabelled is of no use: "
            "train with treeparse self-train, add an objective that needs no trees in a WeightedSum (treeparse config "
            "semisup shows some), or leave data.unlabelled out."
        )
    if learns["unlabelled"] and not unlabelled and all(have_tree):
        raise TreeparseError(
            f"The objective {learns['unlabelled'][0]} is for unlabelled sentences, but there are none: name files as "
            "data.unlabelled, or leave it out."
        )
