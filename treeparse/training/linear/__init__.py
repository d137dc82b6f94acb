"""The epochs of a run of a linear model: updates by perceptron, MIRA or likelihood."""
