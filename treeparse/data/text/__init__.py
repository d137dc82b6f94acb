"""Text: what is none in UTF-8, raw text and what splits it, and unlabelled corpora."""
