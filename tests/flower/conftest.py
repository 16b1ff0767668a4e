import warnings

with warnings.catch_warnings():
    # typer, which flwr imports, takes names from click that click is about to drop.
    warnings.simplefilter("ignore", DeprecationWarning)
    import flwr.clientapp
    import flwr.serverapp  # noqa: F401
