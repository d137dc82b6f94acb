"""Constraints on the shares of a text's arcs: their YAML files, their extraction from trees, and two objectives.

``help("treeparse.objectives.constraints.files")`` documents the files.
"""

from .constraint import Constraint, Distance, Target, WordSet
from .extraction import Extracted, extract_constraints, shares_of_trees
from .files import constraints_to_yaml, parse_constraints, read_constraints
from .generalized_expectation import GeneralizedExpectation
from .matches import ConstraintMatches
from .posterior_regularization import PosteriorRegularization, ShareBounds, multipliers_of

__all__ = [
    "Constraint",
    "ConstraintMatches",
    "Distance",
    "Extracted",
    "GeneralizedExpectation",
    "PosteriorRegularization",
    "ShareBounds",
    "Target",
    "WordSet",
    "constraints_to_yaml",
    "extract_constraints",
    "multipliers_of",
    "parse_constraints",
    "read_constraints",
    "shares_of_trees",
]
