"""The page of a report: one file of HTML that needs no network, with figures and tables beside."""

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
from kernelmdp.report.atomic_files import require_writable, write_beside
from kernelmdp.report.figures import FIGURES, described
from kernelmdp.report.maps import draw_map, read_maps
from kernelmdp.report.reading import Frame, Runs
from kernelmdp.report.rendering import rendered, rendered_panels
from kernelmdp.report.summaries import comparisons, summary, unfinished
from kernelmdp.report.tables import number, text_table
from kernelmdp.version import __version__

TEMPLATES = pathlib.Path(__file__).parent / "templates"
#: Kinds of tables by the ends of their files.
TABLES = {"txt": "text", "csv": "csv", "md": "markdown", "tex": "latex"}
#: Columns of the table of trials: title, and whether they are numbers.
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


@dataclasses.dataclass(frozen=True)
class WrittenReport:
    """What a report left: the page, its tables, and how many figures."""

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
) -> WrittenReport:
    """Write the page, ``figures/`` and ``tables/`` beside it; what is there is replaced.

    Maps are shown of the runs that have ``maps.npz``.
    """
    place = pathlib.Path(out)
    require_page(place)
    if not len(runs.episodes):
        raise ArgumentError("folders", "a run of at least one episode", "runs without any")
    statistics, compared = (f(runs, episodes=episodes) for f in (summary, comparisons))
    names = _file_names(runs.envs)
    sections, written = [], 0
    for env in runs.envs:
        own = runs.of(env)
        if not len(own.episodes):
            continue
        figures = _figures(own, place.parent / "figures", names[env])
        written += len(figures)
        sections.append(
            {
                "name": env,
                "id": names[env],
                "statistics": _rows(statistics, env),
                "comparisons": _rows(compared, env),
                "figures": figures,
                "theory": _theory(own),
                "maps": _maps(own, place.parent / "figures", names[env]),
            }
        )
    for frame, name in ((statistics, "statistics"), (compared, "comparisons")):
        for ending, form in TABLES.items():
            text = text_table(frame, form) if len(frame) else "nothing to compare"
            write_beside(place.parent / "tables" / f"{name}.{ending}", (text + "\n").encode())
    html = _template().render(
        title=title,
        command=command,
        sections=sections,
        notes=[*runs.notes, *unfinished(runs), *notes],
        trials=_trials(runs.trials),
        columns=COLUMNS,
        counts=_counts(runs),
        versions=_versions(runs.trials),
        studies=runs.studies,
        repeated=_repeated(runs),
        made=datetime.datetime.now().astimezone().strftime("%-d %B %Y, %H:%M %Z"),
    )
    write_beside(place, html.encode())
    return WrittenReport(place, statistics, compared, written)


def require_page(place: pathlib.Path) -> None:
    """A page must be a file of HTML, so that nothing else is overwritten, at a place for it."""
    if place.suffix.lower() not in (".html", ".htm") or place.is_dir():
        raise ArgumentError("out", "a file that ends in .html", str(place))
    require_writable(place)


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
    environment.filters["number"] = number
    script, style = (Markup((TEMPLATES / name).read_text()) for name in ("page.js", "page.css"))
    # No other script can run on the page, whatever a name or a setting holds.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    environment.globals |= {"script": script, "style": style, "digest": digest}
    return environment.get_template("page.html")


def _file_names(envs: list[str]) -> dict[str, str]:
    """A name for files and anchors, different for each: names of environments may hold anything."""
    found: dict[str, str] = {}
    for env in envs:
        plain = re.sub(r"[^A-Za-z0-9.]+", "-", env).strip("-.") or "env"
        name, count = plain, 1
        while name in found.values():
            count += 1
            name = f"{plain}-{count}"
        found[env] = name
    return found


def _figures(runs: Runs, folder: pathlib.Path, name: str) -> list[dict[str, str]]:
    found = []
    for key, figure in FIGURES.items():
        files = rendered(functools.partial(_draw, figure.draw, runs))
        for form, content in files.items():
            write_beside(folder / f"{name}-{key}.{form}", content)
        source = "data:image/svg+xml;base64," + base64.b64encode(files["svg"]).decode()
        words = {"title": figure.title, "caption": figure.caption, "source": source}
        found.append(words | {"alt": described(figure, runs)})
    return found


def _draw(draw: Any, runs: Runs, axes: Any) -> None:
    draw(axes, runs)


def _rows(frame: Frame, env: str) -> list[dict[str, Any]]:
    return frame[frame["environment"] == env].to_dict("records") if len(frame) else []


def _theory(runs: Runs) -> list[dict[str, Any]]:
    """What a theorem says of each contender, in the words that its runs have stored."""
    return [
        {"agent": name, "texts": sorted({text or "not stored" for text in trials["bound"]})}
        for name, trials in runs.contenders.items()
    ]


def _maps(runs: Runs, folder: pathlib.Path, name: str) -> list[dict[str, Any]]:
    """Of one seed for each contender; the last frame also as a figure."""
    found = []
    for contender, trials in runs.contenders.items():
        for trial in trials.sort_values("seed").itertuples():
            maps = read_maps(trial.folder)
            if maps is not None:
                found.append({"agent": contender, "seed": trial.seed, "data": maps.coded()})
                draws = [functools.partial(draw_map, maps=maps, name=own) for own in maps.names]
                for form, content in rendered_panels(draws).items():
                    write_beside(folder / f"{name}-maps-{len(found)}.{form}", content)
                break
    return found


def _trials(trials: Frame) -> list[list[dict[str, Any]]]:
    """Cells, each with its text and what it is sorted by."""
    ordered = trials.sort_values(["env", "agent", "setting", "seed"])
    frame = ordered.assign(milliseconds=1e3 * ordered["seconds"])
    return [[_cell(name, row) for name in COLUMNS] for row in frame.to_dict("records")]


def _cell(name: str, row: dict[str, Any]) -> dict[str, Any]:
    value = row[name]
    if not COLUMNS[name][1]:
        return {"text": value or "–", "key": value}
    if name == "bound_value" and math.isnan(value):
        return {"text": "–" if row["bounded"] else "not covered", "key": ""}
    text = number(value)
    if name == "seed":
        text = str(value)
    elif name == "episodes":
        short = value < row["planned"]
        text = f"{value} of {row['planned']}" if short else str(value)
    elif name == "coverage" and np.isfinite(value):
        text = f"{value:.0%}"
    return {"text": text, "key": "" if math.isnan(value) else repr(float(value))}


def _counts(runs: Runs) -> str:
    trials = runs.trials
    agents = len(set(zip(trials["agent"], trials["setting"], strict=True)))

    def some(count: int, word: str) -> str:
        return f"{count:,} {word}{'' if count == 1 else 's'}"

    return ", ".join(
        [
            some(len(trials), "trial"),
            some(agents, "agent"),
            some(len(runs.envs), "environment"),
            some(int(trials["episodes"].sum()), "episode"),
        ]
    )


def _versions(trials: Frame) -> list[tuple[str, str]]:
    """Those that made the page, and all that made the runs."""
    names = ("numpy", "pandas", "matplotlib", "jinja2")
    own = [f"{name} {importlib.metadata.version(name)}" for name in names]
    here = ", ".join([f"kernelmdp {__version__}", f"Python {platform.python_version()}", *own])
    texts = [", ".join(f"{k} {v}" for k, v in versions.items()) for versions in trials["versions"]]
    counted = {text or "not stored": texts.count(text) for text in dict.fromkeys(texts)}
    runs = [(f"{count} of {len(texts)} runs", text) for text, count in counted.items()]
    return [("this page", here), *runs]


def _repeated(runs: Runs) -> list[str]:
    """A command for every contender, with the seeds of its trials."""
    found = []
    for env in runs.envs:
        for trials in runs.of(env).contenders.values():
            first = trials.iloc[0]
            words = [f"env.{name}={_word(value)}" for name, value in first["env_options"].items()]
            words += [f"{name}={_word(value)}" for name, value in first["settings"].items()]
            parts = ["kmdp", "run", first["env_name"], "--agent", first["agent"]]
            parts += [part for word in words for part in ("--set", word)]
            parts += ["--episodes", str(trials["episodes"].max()), "--seed"]
            seeds = _listed(sorted(trials["seed"]))
            command = shlex.join(map(str, parts))
            several = f'for seed in {seeds}; do {command} "$seed"; done'
            found.append(several if len(trials) > 1 else f"{command} {seeds}")
    return found


def _listed(seeds: list[int]) -> str:
    whole = len(seeds) > 3 and seeds == list(range(seeds[0], seeds[-1] + 1))
    return f"$(seq {seeds[0]} {seeds[-1]})" if whole else " ".join(map(str, seeds))


def _word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
