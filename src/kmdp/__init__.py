"""The command line ``kmdp``. Each module adds its commands to the same ``app``.

The library is imported when a command runs. Help, completion and the version need none of it, so
they are there at once.
"""

from kmdp import audit, bound, export, listing, play, report, run, serve, study
from kmdp.command import app, main, parse_value

#: The commands in the order of the help, most needed first.
ORDER = ("run", "play", "study", "report", "envs", "agents", "export", "serve", "bound", "audit")
app.registered_commands.sort(key=lambda command: ORDER.index(str(command.name)))

__all__ = [
    "app",
    "audit",
    "bound",
    "export",
    "listing",
    "main",
    "parse_value",
    "play",
    "report",
    "run",
    "serve",
    "study",
]
