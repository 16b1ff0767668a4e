"""Clients that are not in this process: what is sent to them, what they answer, what may go wrong."""
