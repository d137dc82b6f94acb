"""Parts of neural networks, in single precision and in eight bits, for which torch takes several passes."""
