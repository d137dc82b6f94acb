"""A step of an LSTM, against torch in double precision."""

import numpy as np
import pytest
import torch

from treeparse.kernels.networks.lstm import step


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


@pytest.mark.nojit
@pytest.mark.parametrize("scale", [1e-4, 1.0, 20.0])
def test_steps_are_right_to_single_precision(scale: float) -> None:
    stream = np.random.default_rng(1)
    gates = (scale * stream.normal(size=(3, 4 * 11))).astype(np.float32)
    cells = stream.normal(size=(3, 11)).astype(np.float32)
    found = stepped(gates, cells)
    enter, keep, new, leave = torch.from_numpy(gates).double().chunk(4, 1)
    expected = torch.from_numpy(cells).double() * keep.sigmoid() + enter.sigmoid() * new.tanh()
    np.testing.assert_allclose(found[0], expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found[1], expected.tanh() * leave.sigmoid(), rtol=1e-6, atol=1e-6)


@pytest.mark.nojit
def test_gates_without_bounds() -> None:
    extremes = np.array([-1e30, -88.0, 0.0, 88.0, 1e30], np.float32)
    gates = np.stack([gate.ravel() for gate in np.meshgrid(extremes, extremes, extremes, extremes)], 1)
    cells, states = stepped(gates, np.ones((len(gates), 1), np.float32))
    enter, keep, new, leave = torch.from_numpy(gates).double().unbind(1)
    expected = keep.sigmoid() + enter.sigmoid() * new.tanh()
    np.testing.assert_allclose(cells[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(states[:, 0], expected.tanh() * leave.sigmoid(), atol=1e-6)


def test_what_is_no_number_stays_none() -> None:
    gates = np.zeros((4, 8), np.float32)
    gates[np.arange(4), 2 * np.arange(4)] = np.nan
    cells, states = stepped(gates, np.ones((4, 2), np.float32))
    assert np.isnan(states[:, 0]).all() and np.isfinite(states[:, 1]).all()
    assert np.isnan(cells[:3, 0]).all()
