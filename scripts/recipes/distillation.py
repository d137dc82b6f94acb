"""Distillation: a small parser learns the whole distribution of a larger one over labelled trees, from bare sentences.

    python scripts/recipes/distillation.py

The divergence KL(teacher || student) sums over all labelled trees, exactly, and so does its gradient ([Exp] §6.3).
"""

import demo
import torch
from torch.distributions import kl_divergence

from treeparse import Parser, Sentence
from treeparse.objectives import TreeLikelihood


def distil(teacher: Parser, student: Parser, sentences: list[Sentence], steps: int) -> list[float]:
    """Train the student, which has the teacher's labels; the divergence in nats a word before every step."""
    batch, found = student.collate(sentences), []
    optimizer = torch.optim.AdamW(student.parameters(), lr=1e-2)
    with torch.no_grad():
        goal = teacher.distribution(teacher.collate(sentences))
    for _ in range(steps):
        loss = kl_divergence(goal, student.distribution(batch)).sum() / batch.num_words
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


if __name__ == "__main__":
    torch.manual_seed(1)
    teacher, student = (demo.small_parser(some := demo.sentences()[:30], size) for size in (64, 16))
    optimizer, batch = torch.optim.AdamW(teacher.parameters(), lr=5e-3), teacher.collate(some)
    for _ in range(20):
        optimizer.zero_grad()
        teacher.loss(batch, TreeLikelihood()).backward()
        optimizer.step()
    first, *_, last = distil(teacher, student, some, steps=60)
    print(f"nats a word between teacher and student: {first:.3f} at first, {last:.3f} in the end")
