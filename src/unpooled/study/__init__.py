"""A study across sites: ``study.toml``, keys, agreement on the columns, the coordinator and the sites."""
