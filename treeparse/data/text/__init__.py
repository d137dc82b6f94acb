"""Text: checks of encodings, tokenised text, tokenizers of raw text, and unlabelled corpora."""
