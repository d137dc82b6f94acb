"""Constraints on the shares of a text's arcs: their YAML files, their extraction from trees, and two objectives.

``help("treeparse.objectives.constraints.constraint_files")`` documents the files.
"""

from typing import TYPE_CHECKING

from treeparse.lazy import names_on_demand

from .constraint import (
    Constraint,
    Distance,
    Extracted,
    Target,
    WordSet,
    extract_constraints,
    shares_of_trees,
)
from .constraint_objectives import GeneralizedExpectation, PosteriorRegularization, ShareBounds, multipliers_of
from .matches import ConstraintMatches

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
