"""Constraints on the shares of a text's arcs: their YAML files, their extraction from trees, and two objectives.

``help("treeparse.objectives.constraints.files")`` documents the files.
"""

from .constraint import Constraint as Constraint
from .constraint import Distance as Distance
from .constraint import Target as Target
from .constraint import WordSet as WordSet
from .extraction import Extracted as Extracted
from .extraction import extract_constraints as extract_constraints
from .extraction import shares_of_trees as shares_of_trees
from .files import constraints_to_yaml as constraints_to_yaml
from .files import parse_constraints as parse_constraints
from .files import read_constraints as read_constraints
from .generalized_expectation import GeneralizedExpectation as GeneralizedExpectation
from .matches import ConstraintMatches as ConstraintMatches
from .posterior_regularization import PosteriorRegularization as PosteriorRegularization
from .posterior_regularization import ShareBounds as ShareBounds
from .posterior_regularization import multipliers_of as multipliers_of
