"""The folder of a run: what resumption reads, the log, and what the model comes from."""
