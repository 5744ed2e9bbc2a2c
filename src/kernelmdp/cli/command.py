"""The command itself: what all its parts share, and how it ends."""

import errno
import json
import os
import pathlib
import sys
import warnings
from typing import Any

import jax
import typer

from kernelmdp.errors import KernelMDPError, RecoveryWarning

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Learn to control an unknown system in few episodes: GP-UCRL and PSRL.",
)

#: Every complaint about the command line itself. Typer shows only this child of it, and has moved
#: the rest between versions.
UsageError: Any = typer.BadParameter.__base__

#: What a disk says that is full, or that is not for writing.
REFUSED = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)

#: The code of a command that Ctrl-C ended.
STOPPED = 130


def enable_compilation_cache() -> None:
    """Keep compiled programs in the user's cache folder: a second run starts at once."""
    home = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    jax.config.update("jax_compilation_cache_dir", str(pathlib.Path(home) / "kernelmdp" / "jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)


def parse_value(text: str) -> Any:
    """A number, list or truth value where the text is one; else the text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Our own warning is a sentence; others are shown as Python does."""
    if issubclass(category, RecoveryWarning):
        print(f"kmdp: {message}", file=sys.stderr)
    else:
        print(warnings.formatwarning(message, category, *place[:2]), file=sys.stderr, end="")


def main() -> None:
    """Run the command; bad input ends with one sentence and code 2."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show
            code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        # Some versions of Typer make an exit of Ctrl-C, and give back its code.
        if code == STOPPED:
            raise KeyboardInterrupt
        if code:
            raise SystemExit(code)
    except UsageError as error:
        print(f"kmdp: {error.format_message()}", file=sys.stderr)
        raise SystemExit(2) from None
    except KernelMDPError as error:
        print(f"kmdp: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        print(f"kmdp: {error.filename or 'the disk'}: {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    except typer.Exit as end:
        raise SystemExit(end.exit_code) from None
    except (KeyboardInterrupt, typer.Abort):
        print("kmdp: stopped; the same command goes on from here", file=sys.stderr)
        raise SystemExit(STOPPED) from None
