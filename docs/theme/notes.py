"""Citations such as "(note D6)" in pages become links to that note, when the site is built."""

import re
from typing import Any

CITED = re.compile(r"\bnotes? ((?:[A-EP]\d*)(?:, [A-EP]\d+)*)\b")
LABEL = re.compile(r"[A-EP]\d*")


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Link every label."""
    up = "../" * page.url.count("/")

    def linked(found: re.Match[str]) -> str:
        def link(label: re.Match[str]) -> str:
            return f'<a href="{up}notes.html#{label[0].lower()}">{label[0]}</a>'

        return found[0].replace(found[1], LABEL.sub(link, found[1]))

    return CITED.sub(linked, content)
