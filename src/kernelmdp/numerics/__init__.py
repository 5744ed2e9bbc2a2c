"""Linear algebra, argument checks, fast functions and compiled modules for all layers."""
