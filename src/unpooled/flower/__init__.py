"""Runs across organisations, through Flower (https://flower.ai); ``pip install 'unpooled[flower]'``.

Imported only when asked for. Of flwr only its Message API is used: ``flwr.app``, ``flwr.serverapp`` and
``flwr.clientapp``.
"""
