"""Examples in docstrings as blocks of code: to Markdown, >>> alone would be a quotation."""

from typing import Any

import griffe


class Doctests(griffe.Extension):
    """Puts a fence around every run of lines that begins with >>> and ends with an empty one."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring of whatever was read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The text with its examples in fences."""
    lines, inside = [], False
    for line in text.splitlines():
        if line.startswith(">>>") and not inside:
            lines += ["", "```pycon"]
            inside = True
        elif not line.strip() and inside:
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)
