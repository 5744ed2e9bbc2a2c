"""The application ``kmdp``: what all commands share, and its exit codes."""

import errno
import importlib.metadata
import json
import sys
import warnings
from typing import Annotated, Any

import typer

app = typer.Typer(
    no_args_is_help=False,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    epilog="**A first run:**  `kmdp run riverswim --episodes 50`, then "
    "`kmdp report runs/riverswim-frugal-0`.  Every command explains itself: `kmdp run --help`.",
)

#: The base class of errors in the arguments of a command. Typer exports only a subclass of it, and
#: the base class moves between versions.
UsageError: Any = typer.BadParameter.__base__

#: Error numbers of a disk that is full or cannot be written to. They are reported in one sentence.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)

#: The exit code after Ctrl-C, which shells use too.
STOPPED = 130


def examples(*commands: str) -> str:
    """Format examples for the end of a command's help.

    Args:
        *commands: The commands, without ``kmdp``.

    Returns:
        Text in Markdown: one line for each example.
    """
    return "**Examples:**\n\n" + "\n".join(f"- `kmdp {command}`" for command in commands)


@app.callback()
def _main_command(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Learn to control an unknown system in a handful of episodes, with GP-UCRL and PSRL."""
    if version:
        print(f"kmdp {importlib.metadata.version('kernelmdp')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


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
    from kernelmdp.errors import ObservationWarning, RecoveryWarning, SafetyWarning

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
            code = app(sys.argv[1:], prog_name="kmdp", standalone_mode=False)
        # Some versions of Typer turn Ctrl-C into an exit and return its code.
        if code == STOPPED:
            raise KeyboardInterrupt
        if code:
            raise SystemExit(code)
    except UsageError as error:
        _end(error.format_message())
    except OSError as error:
        if error.errno not in DISK_ERRORS:
            raise
        _end(f"{error.filename or 'the disk'}: {error.strerror}")
    except typer.Exit as end:
        raise SystemExit(end.exit_code) from None
    except (KeyboardInterrupt, typer.Abort):
        print("kmdp: stopped; the same command continues from here", file=sys.stderr)
        raise SystemExit(STOPPED) from None
    except Exception as error:
        from kernelmdp.errors import KernelMDPError

        if not isinstance(error, KernelMDPError):
            raise
        _end(str(error))


def _end(sentence: str) -> None:
    """End the process because of bad input."""
    print(f"kmdp: {sentence}", file=sys.stderr)
    raise SystemExit(2) from None
