"""Distributions over labelled trees."""
