"""Model folders: which files they have, how they are written, checked and read, and models of the hub."""
