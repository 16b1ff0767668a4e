"""Requests and answers over Flower: transport, records, keys, its processes."""
