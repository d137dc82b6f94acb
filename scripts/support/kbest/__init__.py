"""The K-best algorithms of the literature that treeparse is compared with."""
