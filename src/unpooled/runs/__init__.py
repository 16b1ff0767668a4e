"""A federated run from its first round to its file: ``simulate``, the rounds, the history, the checkpoint."""
