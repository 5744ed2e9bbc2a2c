"""Tables of the options of every command, written into a page when the site is built.

The line ``<!-- commands -->`` becomes a section for each command of ``kmdp``, from the code itself.
"""

from typing import Any

import typer.main

MARK = "<!-- commands -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the mark by the sections."""
    if MARK not in markdown:
        return markdown
    from kmdp import app

    commands = typer.main.get_command(app).commands
    return markdown.replace(MARK, "\n\n".join(section(name, commands[name]) for name in commands))


def section(name: str, command: Any) -> str:
    """Write what a command does, with its arguments and options."""
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    usage = " ".join([f"kmdp {name}", *(each.name.upper() for each in arguments)])
    lines = [f"## {name}", "", f"`{usage} [OPTIONS]`", "", command.help or "", ""]
    lines += ["| argument or option | default | meaning |", "|---|---|---|"]
    for each in command.params:
        if each.name == "help":
            continue
        word = each.name.upper() if each in arguments else ", ".join(each.opts)
        default = "" if each.default is None or callable(each.default) else str(each.default)
        meaning = " ".join((getattr(each, "help", "") or "").split()).replace("|", "\\|")
        lines.append(f"| `{word}` | {default} | {meaning} |")
    if command.epilog:
        lines += ["", command.epilog]
    return "\n".join(lines)
