"""Local loops that skip columns, and get the same bits as loops over all of them.

What is skipped
    A client with no entry in column j gets no gradient for coordinate j, in any step of the round. If the
    algorithm and the penalty treat coordinates one by one (``loops.is_coordinatewise``), the coordinate
    moves by an increment d_j that depends only on what the server sent: the same at every such client. And
    where w_j = 0 it does not move at all, d_j = 0.

What is done instead
    The local loop runs once on no rows, for the columns with w_j ≠ 0 ("idle" columns): that is d. Each
    client then runs the loop on its own columns alone, and the uploads come to

        Σ_k weight_k up_k  =  (Σ_k weight_k) d  +  Σ_k weight_k (up_k − d, on the columns that k works on).

Why no bit changes
    A coordinate's numbers pass through the same operations in the same order, whether its neighbours are
    there or not: its gradient sums the same rows in the same order, its prox looks at nothing else, and its
    increment without rows is the one it would have had with rows full of zeros. Uploads are added client by
    client in the order of their positions, whatever the number of threads, of parts or of machines.

Which file does what
    local_numbering   the minibatches of a round, drawn before its first step, and their features numbered
                      0, 1, 2, …: vectors of the local loop are then as short as the list of these features
    sparse_rows       a round on sparse rows: uploads name the features of the client's minibatches; their sum
    dense_rows        a round on dense rows: uploads are whole, work is done on columns that are not empty
    layouts           the copies of dense rows that dense_rows reads, and when a copy is worth making
"""
