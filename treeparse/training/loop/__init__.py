"""The epochs of a run: the parser it starts from, the loss, the optimiser, and what is shown."""
