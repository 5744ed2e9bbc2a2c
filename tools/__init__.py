"""Tools that hold the rules of the code base. They need no package but the standard library."""
