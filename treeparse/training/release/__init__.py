"""The model of a run as a folder of its own, with its card."""
