"""Constraints on the shares of a text's arcs: their YAML files, their extraction from trees, and two objectives.

``help("treeparse.objectives.constraints.reading")`` documents the files.
"""

from .constraint import Constraint as Constraint
from .constraint import Distance as Distance
from .constraint import Target as Target
from .constraint import WordSet as WordSet
from .dual import ShareBounds as ShareBounds
from .dual import multipliers_of as multipliers_of
from .extraction import Extracted as Extracted
from .extraction import extract_constraints as extract_constraints
from .extraction import shares_of_trees as shares_of_trees
from .generalized_expectation import GeneralizedExpectation as GeneralizedExpectation
from .matches import ConstraintMatches as ConstraintMatches
from .posterior_regularization import PosteriorRegularization as PosteriorRegularization
from .reading import parse_constraints as parse_constraints
from .reading import read_constraints as read_constraints
from .writing import constraints_to_yaml as constraints_to_yaml
