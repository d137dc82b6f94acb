"""Sums over all trees of an item: log partitions, marginals, their logs and products with the Hessian."""
