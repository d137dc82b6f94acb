"""The batches of an epoch, the unlabelled text in them, and what loads them."""
