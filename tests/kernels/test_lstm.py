"""A step of an LSTM, against numpy in double precision: torch would take a second of the run without a compiler."""

import numpy as np
import pytest

from treeparse.kernels.networks import step


def stepped(gates: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A step of one direction; the other one does the same with rows reversed, and cells of no row stay as they are."""
    held = np.ones((2, len(cells) + 1, cells.shape[1]), np.float32)
    held[:, :-1] = cells, cells[::-1]
    states = np.empty((2, *cells.shape), np.float32)
    with np.errstate(all="ignore"):  # underflow, of which plain Python warns, is part of it
        step(np.stack([gates, gates[::-1]]), held, states)
    for found in held[:, :-1], states:
        np.testing.assert_array_equal(found[0], found[1, ::-1])
    assert (held[:, -1] == 1).all()
    return held[0, :-1], states[0]


def expected_of(gates: np.ndarray, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The new cells and states, by the definition."""
    enter, keep, new, leave = np.split(gates.astype(np.float64), 4, axis=1)
    expected = cells.astype(np.float64) * sigmoid(keep) + sigmoid(enter) * np.tanh(new)
    return expected, np.tanh(expected) * sigmoid(leave)


def sigmoid(values: np.ndarray) -> np.ndarray:
    return (1 + np.tanh(values / 2)) / 2


@pytest.mark.nojit
@pytest.mark.parametrize("scale", [1e-4, 1.0, 20.0])
def test_steps_are_right_to_single_precision(scale: float) -> None:
    stream = np.random.default_rng(1)
    gates = (scale * stream.normal(size=(3, 4 * 11))).astype(np.float32)
    cells = stream.normal(size=(3, 11)).astype(np.float32)
    for found, expected in zip(stepped(gates, cells), expected_of(gates, cells), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.nojit
def test_gates_without_bounds() -> None:
    extremes = np.array([-1e30, -88.0, 0.0, 88.0, 1e30], np.float32)
    gates = np.stack([gate.ravel() for gate in np.meshgrid(extremes, extremes, extremes, extremes)], 1)
    cells = np.ones((len(gates), 1), np.float32)
    for found, expected in zip(stepped(gates, cells), expected_of(gates, cells), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_what_is_no_number_stays_none() -> None:
    gates = np.zeros((4, 8), np.float32)
    gates[np.arange(4), 2 * np.arange(4)] = np.nan
    cells, states = stepped(gates, np.ones((4, 2), np.float32))
    assert np.isnan(states[:, 0]).all() and np.isfinite(states[:, 1]).all()
    assert np.isnan(cells[:3, 0]).all()
