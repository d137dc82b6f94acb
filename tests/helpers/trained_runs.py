"""What a run leaves: the epochs that it logged, and the weights of its model."""

import csv
from pathlib import Path

import torch
from safetensors.torch import load_file

Weights = dict[str, torch.Tensor]


def rows(run: Path) -> list[dict[str, str]]:
    """The epochs that a run logged."""
    with (run / "metrics.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def weights(model: Path) -> Weights:
    return load_file(model / "model.safetensors")


def equal(first: Weights, second: Weights) -> bool:
    """Whether weights are the same to the last bit."""
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
