"""The Trainer of transformers over a parser (pip install accelerate, which it needs)."""

from tempfile import TemporaryDirectory
from typing import Any

import demo
import torch
from torch import Tensor, nn
from transformers import Trainer, TrainingArguments

from treeparse import Parser
from treeparse.batch import Batch
from treeparse.data.parses import with_parses
from treeparse.metrics import attachment_scores
from treeparse.objectives import TreeLikelihood


class WithLoss(nn.Module):
    """A parser as the Trainer wants a model."""

    def __init__(self, parser: Parser) -> None:
        super().__init__()
        self.parser, self.objective = parser, TreeLikelihood()

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """The loss, in nats, the mean over words."""
        return {"loss": self.parser.loss(batch.to(self.parser.device), self.objective)}


if __name__ == "__main__":
    torch.manual_seed(1)
    train, dev = demo.sentences()[:200], demo.sentences("dev")[:50]
    parser, data = demo.small_parser(train), dict(enumerate(train))
    with TemporaryDirectory() as folder:
        settings: Any = {"per_device_train_batch_size": 20, "learning_rate": 5e-3, "num_train_epochs": 3}
        arguments = TrainingArguments(folder, **settings, remove_unused_columns=False, report_to="none", use_cpu=True)
        options: Any = {"train_dataset": data, "data_collator": lambda some: {"batch": parser.collate(some)}}
        Trainer(WithLoss(parser), arguments, **options).train()
    print(f"dev UAS {attachment_scores(dev, with_parses(dev, parser.eval().parse(dev))).uas:.2%}")
