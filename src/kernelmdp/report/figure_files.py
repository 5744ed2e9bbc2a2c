"""Figures of a page: written to files in three formats, and embedded as pictures."""

import base64
import pathlib
from collections.abc import Callable
from typing import Any

from kernelmdp.errors import ArgumentError
from kernelmdp.report.atomic_files import write_file
from kernelmdp.report.rendering import FORMATS, render

#: Width in inches of a figure that is alone in its file.
SINGLE_WIDTH = 7.0


def write_figure(draw: Callable[[Any], Any], path: Any, *, width: float = SINGLE_WIDTH) -> None:
    """Write one figure into one file, in the format of its ending.

    Args:
        draw: A function that draws on axes.
        path: The file to write. Its name ends in .pdf, .svg or .png.
        width: The width in inches.

    Raises:
        ArgumentError: If the name of the file has another ending.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_figure(lambda axes: axes.plot([1, 2]), f"{folder}/line.svg")
    ...     pathlib.Path(folder, "line.svg").exists()
    True
    """
    target = pathlib.Path(path)
    form = target.suffix.removeprefix(".").lower()
    if form not in FORMATS:
        raise ArgumentError("path", "a file that ends in " + ", ".join(FORMATS), str(path))
    write_file(target, render(draw, [form], width=width)[form])


def embed_figure(
    files: dict[str, bytes],
    folder: pathlib.Path,
    name: str,
    *,
    title: str,
    caption: str,
    alt: str,
    wide: bool = False,
) -> dict[str, Any]:
    """Write the files of a figure, and return what the page needs to show it.

    Args:
        files: The content of the file of each format, with "svg" among them.
        folder: The folder of the figures.
        name: The name of the files, without ending.
        title: The title.
        caption: What the figure shows.
        alt: The figure in words.
        wide: Whether the figure takes the width of the page.

    Returns:
        Title, caption, text, picture and width.

    >>> import tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> words = {"title": "Return", "caption": "By episode.", "alt": "Return by episode"}
    >>> embed_figure({"svg": b"<svg/>"}, folder, "return", **words)["source"]
    'data:image/svg+xml;base64,PHN2Zy8+'
    """
    for form, content in files.items():
        write_file(folder / f"{name}.{form}", content)
    source = "data:image/svg+xml;base64," + base64.b64encode(files["svg"]).decode()
    return {"title": title, "caption": caption, "alt": alt, "source": source, "wide": wide}
