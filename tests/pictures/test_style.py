"""Colours that mean something can be told apart without red, green or blue cones."""

import itertools

import numpy as np
import pytest

from treeparse.pictures.style import COLOURS

# From linear RGB to what the colour-blind see of it (Machado, Oliveira and Fernandes 2009, severity 1).
SEEN = {
    "all cones": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(1)
CLEARLY = 15.0  # CIE 1976; 2.3 is just noticeable


def lab(colour: str, seen: str) -> np.ndarray:
    """CIELAB coordinates of a colour as it is seen."""
    rgb = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x, y, z = TO_XYZ @ np.clip(np.asarray(SEEN[seen]) @ linear, 0, 1) / WHITE
    x, y, z = (t ** (1 / 3) if t > (6 / 29) ** 3 else t * (29 / 6) ** 2 / 3 + 4 / 29 for t in (x, y, z))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_marks_lines_labels_and_grounds_differ_for_all_eyes(seen: str, scheme: int) -> None:
    apart = [*itertools.combinations(("mark", "line", "label", "ground"), 2), ("mark", "heat"), ("ink", "ground")]
    for first, second in apart:
        difference = np.linalg.norm(lab(COLOURS[first][scheme], seen) - lab(COLOURS[second][scheme], seen))
        assert difference > CLEARLY, (first, second, difference)
