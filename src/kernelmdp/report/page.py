"""The page of a report: one HTML file that needs no network, with folders of figures and tables."""

import base64
import dataclasses
import datetime
import functools
import hashlib
import importlib.metadata
import json
import math
import pathlib
import platform
import re
import shlex
from typing import Any

import numpy as np

from kernelmdp.errors import ArgumentError
from kernelmdp.report.atomic_files import require_writable, write_file
from kernelmdp.report.axis_scales import checked_scale, set_scale
from kernelmdp.report.figure_files import embed_figure
from kernelmdp.report.figures import FIGURES, alternative_text
from kernelmdp.report.maps import draw_map, read_maps
from kernelmdp.report.reading import Frame, Runs
from kernelmdp.report.rendering import figure_width, render, render_panels
from kernelmdp.report.safety_section import count_figures, safety_section
from kernelmdp.report.summaries import comparisons, summary, unfinished_notes
from kernelmdp.report.tables import format_number, text_table
from kernelmdp.version import __version__

#: The folder of the page's template, script and style.
TEMPLATES = pathlib.Path(__file__).parent / "templates"
#: Formats of tables, by the endings of their files.
TABLE_FORMATS = {"txt": "text", "csv": "csv", "md": "markdown", "tex": "latex"}
#: Columns of the table of trials: the title, and whether it holds numbers.
COLUMNS = {
    "env": ("environment", False),
    "agent": ("agent", False),
    "setting": ("setting", False),
    "seed": ("seed", True),
    "episodes": ("episodes", True),
    "regret": ("regret", True),
    "bound_value": ("bound", True),
    "slope": ("slope", True),
    "mean_return": ("mean return", True),
    "last_return": ("last return", True),
    "coverage": ("coverage", True),
    "milliseconds": ("ms an episode", True),
}
#: Those of them that say nothing where no optimum and no bound are known.
REGRETS = ("regret", "bound_value", "slope")


@dataclasses.dataclass(frozen=True)
class WrittenReport:
    """The files of a report.

    Attributes:
        page: The page.
        statistics: The table of statistics over seeds.
        comparisons: The table of pairs of agents.
        figures: The number of figures.
    """

    page: pathlib.Path
    statistics: Frame
    comparisons: Frame
    figures: int


def write_report(
    runs: Runs,
    out: Any,
    *,
    title: str = "Report",
    command: str = "",
    episodes: int | None = None,
    notes: tuple[str, ...] = (),
    scale: str = "auto",
    vacuous: bool = False,
    width: str | float = 4.8,
) -> WrittenReport:
    """Write a page, and the folders ``figures`` and ``tables`` beside it. Old files are replaced.

    Maps are shown for the runs that have ``maps.npz``.

    Args:
        runs: The runs.
        out: The page to write. Its name ends in .html.
        title: The title of the page.
        command: The command that made the page, which the page shows.
        episodes: After how many episodes statistics are computed. None means as many as all trials
            of an environment have.
        notes: Notes for the top of the page.
        scale: "linear", "log" or "log-log" axes of figures; "auto" chooses for each.
        vacuous: Whether to draw bounds above all that can be lost too.
        width: The width of figures: "one-column" or "two-column" of a paper, or inches.

    Returns:
        The page, its tables and the number of figures.

    Raises:
        ArgumentError: If there is no episode.
    """
    page = pathlib.Path(out)
    require_page(page)
    checked_scale(scale)
    style: dict[str, Any] = {"scale": scale, "vacuous": vacuous, "width": figure_width(width)}
    if not len(runs.episodes):
        raise ArgumentError("folders", "a run of at least one episode", "runs without any")
    statistics, compared = (table(runs, episodes=episodes) for table in (summary, comparisons))
    names = _file_names(runs.envs)
    sections, figure_count = [], 0
    for env in runs.envs:
        env_runs = runs.select(env)
        if not len(env_runs.episodes):
            continue
        figures = _figures(env_runs, page.parent / "figures", names[env], **style)
        safety = safety_section(env_runs, page.parent / "figures", names[env])
        figure_count += len(figures) + count_figures(safety)
        sections.append(
            {
                "name": env,
                "id": names[env],
                "statistics": _rows(statistics, env),
                "filled": _filled(_of_env(statistics, env), ("slope", "coverage")),
                "comparisons": _rows(compared, env),
                "figures": figures,
                "left_out": [each for each in FIGURES.values() if each.is_empty(env_runs)],
                "theory": _theory(env_runs),
                "safety": safety,
                "maps": _maps(env_runs, page.parent / "figures", names[env]),
            }
        )
    for frame, name in ((statistics, "statistics"), (compared, "comparisons")):
        for ending, form in TABLE_FORMATS.items():
            text = text_table(frame, form) if len(frame) else "nothing to compare"
            write_file(page.parent / "tables" / f"{name}.{ending}", (text + "\n").encode())
    html = _template().render(
        title=title,
        command=command,
        sections=sections,
        notes=[*runs.notes, *unfinished_notes(runs), *notes],
        trials=_trials(runs.trials),
        columns=_columns(runs.trials),
        counts=_counts(runs),
        versions=_versions(runs.trials),
        studies=runs.studies,
        repeated=_run_commands(runs),
        made=datetime.datetime.now().astimezone().strftime("%-d %B %Y, %H:%M %Z"),
    )
    write_file(page, html.encode())
    return WrittenReport(page, statistics, compared, figure_count)


def require_page(path: pathlib.Path) -> None:
    """Check that a page can be written. Only HTML files are overwritten.

    Args:
        path: The page.

    Raises:
        ArgumentError: If its name does not end in .html, or it cannot be written.
    """
    if path.suffix.lower() not in (".html", ".htm") or path.is_dir():
        raise ArgumentError("out", "a file that ends in .html", str(path))
    require_writable(path)


@functools.cache
def _template() -> Any:
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = format_number
    script, style = (Markup((TEMPLATES / name).read_text()) for name in ("page.js", "page.css"))
    # The page allows only the script with this digest. A name or a setting cannot inject another.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals |= {"script": script, "style": style, "digest": digest}
    return environment.get_template("page.html")


def _file_names(envs: list[str]) -> dict[str, str]:
    """Return unique names for files and anchors. Names of environments may contain anything."""
    names: dict[str, str] = {}
    for env in envs:
        plain = re.sub(r"[^A-Za-z0-9.]+", "-", env).strip("-.") or "env"
        name, count = plain, 1
        while name in names.values():
            count += 1
            name = f"{plain}-{count}"
        names[env] = name
    return names


def _figures(
    runs: Runs, folder: pathlib.Path, name: str, *, scale: str, vacuous: bool, width: float
) -> list[dict[str, Any]]:
    figures = []
    for key, figure in FIGURES.items():
        if figure.is_empty(runs):
            continue
        options = {"vacuous": vacuous} if key == "regret" else {}
        draw = functools.partial(figure.draw, **options)
        files = render(functools.partial(_draw, draw, runs, scale), width=width)
        fields: Any = dict(zip(("title", "caption"), figure.texts(runs), strict=True))
        alt = alternative_text(figure, runs)
        figures.append(embed_figure(files, folder, f"{name}-{key}", alt=alt, **fields))
    return figures


def _draw(draw: Any, runs: Runs, scale: str, axes: Any) -> None:
    draw(axes, runs)
    set_scale(axes, scale)


def _of_env(frame: Frame, env: str) -> Frame:
    return frame[frame["environment"] == env] if len(frame) else frame


def _rows(frame: Frame, env: str) -> list[dict[str, Any]]:
    return _of_env(frame, env).to_dict("records")


def _filled(frame: Frame, names: tuple[str, ...]) -> list[str]:
    """Return the columns that hold a number."""
    return [name for name in names if frame[name].notna().any()]


def _columns(trials: Frame) -> dict[str, tuple[str, bool]]:
    """Return the columns of the table of trials. Without regrets, those about regret are empty."""
    empty = set() if _filled(trials, REGRETS) else set(REGRETS)
    return {name: title for name, title in COLUMNS.items() if name not in empty}


def _theory(runs: Runs) -> list[dict[str, Any]]:
    """Return which theorem bounds each contender, as its runs have stored it."""
    return [
        {"agent": name, "texts": sorted({text or "not stored" for text in trials["bound"]})}
        for name, trials in runs.contenders.items()
    ]


def _maps(runs: Runs, folder: pathlib.Path, name: str) -> list[dict[str, Any]]:
    """Return the maps of one seed for each contender, and draw the last ones as a figure."""
    sections: list[dict[str, Any]] = []
    for contender, trials in runs.contenders.items():
        for trial in trials.sort_values("seed").itertuples():
            maps = read_maps(trial.folder)
            if maps is not None:
                draws = [functools.partial(draw_map, maps=maps, name=layer) for layer in maps.names]
                alt = f"Maps of {contender} after {maps.episodes[-1]} episodes"
                texts: Any = {"title": "Maps", "caption": ""}
                texts["alt"] = f"{alt}: {', '.join(maps.names)}"
                file = f"{name}-maps-{len(sections) + 1}"
                picture = embed_figure(render_panels(draws), folder, file, **texts)
                section = {"agent": contender, "seed": trial.seed, "picture": picture}
                sections.append(section | {"data": maps.encode()})
                break
    return sections


def _trials(trials: Frame) -> list[list[dict[str, Any]]]:
    """Return the rows of the table of trials. Each cell has a text and a key for sorting."""
    ordered = trials.sort_values(["env", "label", "agent", "setting", "seed"])
    agents = np.where(ordered["label"] == "", "", ordered["label"] + ": ") + ordered["agent"]
    frame = ordered.assign(milliseconds=1e3 * ordered["seconds"], agent=agents)
    return [[_cell(name, row) for name in _columns(trials)] for row in frame.to_dict("records")]


def _cell(name: str, row: dict[str, Any]) -> dict[str, Any]:
    value = row[name]
    if not COLUMNS[name][1]:
        return {"text": value or "–", "key": value}
    if name == "bound_value" and math.isnan(value):
        return {"text": "–" if row["bounded"] else "not covered", "key": ""}
    text = format_number(value)
    if name == "seed":
        text = str(value)
    elif name == "episodes":
        unfinished = value < row["planned"]
        text = f"{value} of {row['planned']}" if unfinished else str(value)
    elif name == "coverage" and np.isfinite(value):
        text = f"{value:.0%}"
    return {"text": text, "key": "" if math.isnan(value) else repr(float(value))}


def counted(count: int, noun: str) -> str:
    """Write a number of things.

    Args:
        count: The number.
        noun: One thing.

    Returns:
        The text.

    >>> counted(1, "trial"), counted(1200, "episode")
    ('1 trial', '1,200 episodes')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _counts(runs: Runs) -> str:
    trials = runs.trials
    agents = len(set(zip(trials["agent"], trials["setting"], strict=True)))
    return ", ".join(
        [
            counted(len(trials), "trial"),
            counted(agents, "agent"),
            counted(len(runs.envs), "environment"),
            counted(int(trials["episodes"].sum()), "episode"),
        ]
    )


def _versions(trials: Frame) -> list[tuple[str, str]]:
    """Return the versions that made the page, and those that made the runs."""
    names = ("numpy", "pandas", "matplotlib", "jinja2")
    libraries = [f"{name} {importlib.metadata.version(name)}" for name in names]
    python = f"Python {platform.python_version()}"
    page_versions = ", ".join([f"kernelmdp {__version__}", python, *libraries])
    texts = [", ".join(f"{k} {v}" for k, v in versions.items()) for versions in trials["versions"]]
    counted = {text or "not stored": texts.count(text) for text in dict.fromkeys(texts)}
    runs = [(f"{count} of {len(texts)} runs", text) for text, count in counted.items()]
    return [("this page", page_versions), *runs]


def _run_commands(runs: Runs) -> list[str]:
    """Return the commands that repeat the runs, one for each contender with its seeds."""
    commands = []
    for env in runs.envs:
        for trials in runs.select(env).contenders.values():
            first = trials.iloc[0]
            options, values = first["env_options"], first["settings"]
            settings = [f"env.{name}={_as_text(value)}" for name, value in options.items()]
            settings += [f"{name}={_as_text(value)}" for name, value in values.items()]
            parts = ["kmdp", "run", first["env_name"], "--agent", first["agent"]]
            parts += [part for setting in settings for part in ("--set", setting)]
            parts += ["--episodes", str(trials["episodes"].max()), "--seed"]
            seeds = _seed_list(sorted(trials["seed"]))
            command = shlex.join(map(str, parts))
            loop = f'for seed in {seeds}; do {command} "$seed"; done'
            commands.append(loop if len(trials) > 1 else f"{command} {seeds}")
    return commands


def _seed_list(seeds: list[int]) -> str:
    consecutive = len(seeds) > 3 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"$(seq {seeds[0]} {seeds[-1]})" if consecutive else " ".join(map(str, seeds))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
