"""A training loop in torch alone: batches of sentences, the loss, and the scores of a dev set after each epoch."""

import random

import demo
import torch

from treeparse.data.parses import with_parses
from treeparse.metrics import AttachmentScores
from treeparse.objectives import TreeLikelihood

if __name__ == "__main__":
    torch.manual_seed(1)
    train, dev = demo.sentences()[:200], demo.sentences("dev")[:50]
    parser, objective, order = demo.small_parser(train), TreeLikelihood(), random.Random(1)
    optimizer = torch.optim.AdamW(parser.parameters(), lr=5e-3)
    for epoch in range(1, 4):
        parser.train()
        order.shuffle(train)
        losses = []
        for start in range(0, len(train), 20):
            batch = parser.collate(train[start : start + 20])
            optimizer.zero_grad()
            loss = parser.loss(batch, objective)  # in nats, the mean over words
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        parser.eval()
        scores = AttachmentScores()
        scores.update(dev, with_parses(dev, parser.parse(dev)))
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.3f}, dev UAS {scores.compute()['uas']:.2%}")
