"""Text without trees: raw text and what splits it, and unlabelled corpora."""
