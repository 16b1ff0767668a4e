"""Clients that are not in this process: what is sent to them, what they answer, what may go wrong.

    data = RemoteData.of(transport)                 asks everyone who holds rows what they have
    up.solve(problem, data)                         as with rows at hand; so path, cross_validate, simulate
    up.simulate(…, data, engine=Remote(minimum=3))  a round goes on with three clients, if it must

A ``Transport`` (``messages``) carries requests; a ``Desk`` answers them where the rows are.
"""
