"""The sentences of a run, and the layers of frozen encoders that are computed for them once."""
