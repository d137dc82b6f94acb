"""Random trees of an item, with replacement and without."""
