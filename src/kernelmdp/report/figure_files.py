"""Figures of a page: written to files in three formats, and embedded as pictures."""

import base64
import pathlib
from typing import Any

from kernelmdp.report.atomic_files import write_file


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
