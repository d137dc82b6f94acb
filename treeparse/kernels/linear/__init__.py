"""Linear models: scores of parts and labels by hashed features, and the updates of the weights."""
