"""The application ``kmdp``: what all commands share, and its exit codes."""

import errno
import json
import sys
import warnings
from typing import Any

import typer

from kernelmdp.errors import KernelMDPError, ObservationWarning, RecoveryWarning, SafetyWarning

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Learn to control an unknown system in few episodes: GP-UCRL and PSRL.",
)

#: The base class of errors in the arguments of a command. Typer exports only a subclass of it, and
#: the base class moves between versions.
UsageError: Any = typer.BadParameter.__base__

#: Error numbers of a disk that is full or cannot be written to. They are reported in one sentence.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)

#: The exit code after Ctrl-C, which shells use too.
STOPPED = 130


def parse_value(text: str) -> Any:
    """Parse the value of a setting.

    Args:
        text: The text.

    Returns:
        The number, list or truth value that the text is in JSON; otherwise the text itself.
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _show_warning(
    message: Warning | str, category: type[Warning], *location: Any, **options: Any
) -> None:
    """Print warnings for users as plain sentences, and others as Python does."""
    if issubclass(category, RecoveryWarning | ObservationWarning | SafetyWarning):
        print(f"kmdp: {message}", file=sys.stderr)
    else:
        print(warnings.formatwarning(message, category, *location[:2]), file=sys.stderr, end="")


def main() -> None:
    """Run the command line. Bad input gives one sentence and exit code 2.

    Raises:
        SystemExit: With the exit code, if it is not 0.
        KeyboardInterrupt: Not seen by callers: it becomes the exit code 130.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        # Some versions of Typer turn Ctrl-C into an exit and return its code.
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
        if error.errno not in DISK_ERRORS:
            raise
        print(f"kmdp: {error.filename or 'the disk'}: {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    except typer.Exit as end:
        raise SystemExit(end.exit_code) from None
    except (KeyboardInterrupt, typer.Abort):
        print("kmdp: stopped; the same command continues from here", file=sys.stderr)
        raise SystemExit(STOPPED) from None
