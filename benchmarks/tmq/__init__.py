"""TMQ from one publisher to one subscriber; `side` measures a TMQ network as a side of a bridge."""
