"""Constraints on the shares of a text's arcs: read from YAML, found in trees, and met by two objectives.

``help("treeparse.objectives.constraints.reading")`` shows what stands in a file.
"""

from .constraint import Constraint as Constraint
from .constraint import Distance as Distance
from .constraint import Target as Target
from .constraint import Words as Words
from .dual import Bounds as Bounds
from .dual import multipliers_of as multipliers_of
from .extraction import Extracted as Extracted
from .extraction import extract_constraints as extract_constraints
from .extraction import shares_of_trees as shares_of_trees
from .features import Features as Features
from .generalized_expectation import GeneralizedExpectation as GeneralizedExpectation
from .posterior_regularization import PosteriorRegularization as PosteriorRegularization
from .reading import parse_constraints as parse_constraints
from .reading import read_constraints as read_constraints
from .writing import constraints_to_yaml as constraints_to_yaml
