"""The dependency grammar that ``scripts/support/make_demo_treebank.py`` draws sentences from."""
