"""The compiled substrate: the compiler's front end, matrix products, row layouts, random draws, sums."""
