"""Sums in logs, each of two numbers or more: slower than plain weights, and right for finite scores of any size."""
