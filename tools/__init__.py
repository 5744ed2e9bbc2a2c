"""Tools that hold the rules for docstrings, comments and names."""
