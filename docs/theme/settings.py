"""Tables of all settings, written into pages when the site is built: from the fields themselves.

A line ``<!-- settings: NAME -->`` becomes the table of the settings class NAME, such as
``kernelmdp.agents.psrl:PSRLConfig``.
"""

import dataclasses
import importlib
import re
from typing import Any

MARK = re.compile(r"^<!-- settings: ([\w.]+):(\w+) -->$", re.M)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace every mark by its table."""
    return MARK.sub(lambda found: table(found[1], found[2]), markdown)


def table(module: str, name: str) -> str:
    """Write the fields of a settings class with their defaults and meanings."""
    kind = getattr(importlib.import_module(module), name)
    lines = ["| setting | default | meaning |", "|---|---|---|"]
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        given = field.default
        if given is dataclasses.MISSING:
            made = field.default_factory is not dataclasses.MISSING
            given = field.default_factory() if made else ""
        default = "settings of its own" if dataclasses.is_dataclass(given) else str(given)
        meaning = field.metadata.get("meaning", "").replace("|", "\\|")
        lines.append(f"| `{field.name}` | {default} | {meaning} |")
    return "\n".join(lines)
