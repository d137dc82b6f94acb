"""The distributions over trees by the names of their trees in a config."""

from collections.abc import Mapping

from treeparse.errors import TreeparseError, did_you_mean
from treeparse.trees.arc_crfs import NonProjectiveCRF, ProjectiveCRF
from treeparse.trees.crf import TreeCRF
from treeparse.trees.second_order_crfs import NonProjectiveSiblingCRF, SecondOrderCRF, SiblingCRF
from treeparse.user_code import import_code

DISTRIBUTIONS: Mapping[str, type[TreeCRF]] = {
    "nonprojective": NonProjectiveCRF,
    "projective": ProjectiveCRF,
    "siblings": SiblingCRF,
    "second_order": SecondOrderCRF,
    "nonprojective_siblings": NonProjectiveSiblingCRF,
}


def distribution_named(trees: str) -> type[TreeCRF]:
    """Return the distribution of a name, or of a class path, such as ``mine.ShallowCRF``, which is imported.

    Raises:
        TreeparseError: the name is unknown, or the class is no `TreeCRF` with a ``tree_family``.
    """
    if trees in DISTRIBUTIONS:
        return DISTRIBUTIONS[trees]
    module, _, name = trees.rpartition(".")
    if not module:
        problem = f"Unknown trees {trees!r:.60}. Trees: {', '.join(DISTRIBUTIONS)}, or the class path of a TreeCRF"
        raise TreeparseError(problem + (did_you_mean(trees, DISTRIBUTIONS) or "."))
    kind = getattr(import_code(module), name, None)
    if not (isinstance(kind, type) and issubclass(kind, TreeCRF) and hasattr(kind, "tree_family")):
        raise TreeparseError(f"Trees must be a subclass of treeparse.trees.TreeCRF with a tree_family, got {trees}.")
    return kind
