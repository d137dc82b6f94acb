"""Trains by several configs, one after the other, and writes the losses of this process's steps beside each run.

``torchrun --nproc_per_node 2 several_processes.py POINT CONFIG...``; at the POINT ``EPOCH.STEP`` the second process
kills itself, at ``-`` none does. A config of self-training has the name ``self-training.yaml``.
"""

import json
import os
import signal
import sys
from pathlib import Path

import torch

from treeparse.data.batches.steps import ShareOfStep
from treeparse.training import load_config, self_training, train
from treeparse.training.parser_module import ParserModule

RANK = os.environ.get("LOCAL_RANK", "0")


def record_losses(losses: list[float], point: str = "-") -> None:
    """Add what this process contributes to the loss of every step, times batches and devices; die at a point."""
    take = ParserModule.training_step

    def training_step(self: ParserModule, share: ShareOfStep, number: int) -> torch.Tensor:
        if RANK == "1" and f"{self.current_epoch}.{number}" == point:
            os.kill(os.getpid(), signal.SIGKILL)
        loss = take(self, share, number)
        losses.extend([0.0] * (self.global_step + 1 - len(losses)))
        losses[self.global_step] += float(loss.detach())
        return loss

    ParserModule.training_step = training_step


def losses_file(output: Path, rank: object) -> Path:
    """Return the file of the losses of a process."""
    return output.with_name(f"{output.name}-losses-{rank}.json")


if __name__ == "__main__":
    torch.set_num_threads(1)
    losses: list[float] = []
    record_losses(losses, sys.argv[1])
    for path in sys.argv[2:]:
        losses.clear()
        config = load_config(path)
        if path.endswith("self-training.yaml"):
            self_training.self_train(config, 1, least_log_prob=-1.2, quiet=True)
        else:
            train(config, resume=True, quiet=True)
        losses_file(Path(config.output), RANK).write_text(json.dumps(losses))
