"""Clients in other processes: what they are sent, what they answer, and what happens where they do not.

    data = RemoteData.of(transport)                 asks every holder of rows what it has
    up.solve(problem, data)                         as with rows in this process
    up.simulate(…, data, engine=Remote(minimum=3))  a round needs three clients at least

A ``Transport`` (``messages``) carries requests; a ``ClientServer`` answers them where the rows are.
"""
