"""Trees of an item drawn by chance, with replacement and without."""
