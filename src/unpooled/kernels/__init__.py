"""The compiled substrate: what is compiled and how, products, rows as loops read them, draws, sums."""
