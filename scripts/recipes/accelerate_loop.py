"""Training by Accelerate (pip install accelerate), on the devices that it finds, or in processes as it is told.

torchrun --standalone --nproc-per-node 2 scripts/recipes/accelerate_loop.py
"""

import demo
import torch
from accelerate import Accelerator  # pyright: ignore
from accelerate.utils import set_seed  # pyright: ignore
from torch.utils.data import DataLoader

from treeparse.data.parses import with_parses
from treeparse.metrics import AttachmentScores
from treeparse.objectives import TreeLikelihood

if __name__ == "__main__":
    accelerator, objective = Accelerator(cpu=not torch.cuda.is_available()), TreeLikelihood()
    set_seed(1)
    train, dev = demo.sentences()[:200], demo.sentences("dev")[:51]
    parser = demo.small_parser(train)
    loader = DataLoader(train, 20, shuffle=True, collate_fn=list)  # pyright: ignore[reportArgumentType]
    loss_of, optimizer, loader = accelerator.prepare(parser, torch.optim.AdamW(parser.parameters(), lr=5e-3), loader)
    for _ in range(3):
        for sentences in loader:
            optimizer.zero_grad()
            accelerator.backward(loss_of(parser.collate(sentences).to(accelerator.device), objective))
            optimizer.step()
    parser.eval()
    own = dev[accelerator.process_index :: accelerator.num_processes]
    scores = AttachmentScores().to(accelerator.device)  # its sums are those of all processes
    scores.update(own, with_parses(own, parser.parse(own)))
    uas = scores.compute()["uas"]
    accelerator.print(f"dev UAS {uas:.2%} by {accelerator.num_processes} processes")
    accelerator.end_training()  # otherwise threads that still run may abort a process at its end
