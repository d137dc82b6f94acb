"""The batches of an epoch, and what loads them."""
