"""The dependency grammar that ``scripts/make_demo_treebank.py`` draws sentences from."""
