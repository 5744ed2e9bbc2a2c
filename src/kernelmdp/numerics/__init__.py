"""Linear algebra and checks that every layer shares."""
