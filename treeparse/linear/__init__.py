"""Linear models: feature templates, attributes of words, and scores by hashed features."""
