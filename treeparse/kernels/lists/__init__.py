"""The K best trees of an item in order, without labels and with them."""
