"""Constraints on the shares of a text's arcs: their YAML files, their extraction from trees, and two objectives.

``help("treeparse.objectives.constraints.constraint_files")`` documents the files.
"""

from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand

from .constraint import Constraint, Distance, Target, WordSet
from .extraction import Extracted, extract_constraints, shares_of_trees
from .generalized_expectation import GeneralizedExpectation
from .matches import ConstraintMatches
from .posterior_regularization import PosteriorRegularization, ShareBounds, multipliers_of

if TYPE_CHECKING:
    from .constraint_files import constraints_to_yaml, parse_constraints, read_constraints

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
# Most objectives need no YAML.
__getattr__, __dir__ = names_on_demand(
    __name__,
    {"treeparse.objectives.constraints.constraint_files": "constraints_to_yaml parse_constraints read_constraints"},
)
