"""The settings of a run: their types, how they are read, and what ``auto`` resolves to."""
