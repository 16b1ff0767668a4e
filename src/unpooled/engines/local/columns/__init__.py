"""Local loops that leave out the columns a client does not have."""
