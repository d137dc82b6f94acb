"""The algorithms of [Exp] and those that it is compared with, and the sentences that they are timed on."""
