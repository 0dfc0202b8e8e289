"""Has controller-gen render a kind with a field for each of its markers, to compare our definitions with."""
