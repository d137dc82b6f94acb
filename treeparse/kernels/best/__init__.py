"""The best tree of an item, and whether heads are a tree."""
