"""The GP layer: condition on an episode, predict, draw; for sizes of data and dimensions.

Contenders and the exact answer are those of benchmarks/gp.
"""

import os
import pathlib
import statistics
import sys
import time

TITLE = "Gaussian processes"
REPAIRED = "gpytorch cached root, mean cache repaired"
CONTENDERS = (
    "kernelmdp", "kernelmdp exact", "scikit-learn", "gpytorch cached root", REPAIRED,
    "gpytorch LOVE 300, tight CG, mean cache repaired", "botorch", "gpjax",
)  # fmt: skip
SIZES = [(200, 4), (2_000, 4), (2_000, 1), (2_000, 2), (2_000, 8), (20_000, 4)]
#: Of ours alone: the goal for n = 20,000 is a ratio to this.
BESIDES = {"contender": "kernelmdp", "n": 1_000, "d": 4}
HERE = pathlib.Path(__file__).resolve().parent
ROUNDS, CHECKED, JUDGED = 3, 1_000, 5_000
#: The error of a std that counts as equal accuracy.
ACCURATE = 0.005
WORK = ("append", "predict", "draw")


def cells(quick):
    sizes = [(200, 2)] if quick else SIZES
    found = [{"contender": name, "n": n, "d": d} for n, d in sizes for name in CONTENDERS]
    return found if quick else [*found, BESIDES]


def limit(cell):
    return 90.0 if cell["n"] > JUDGED else 240.0


def run(cell):
    os.environ["GP_DIMENSION"] = str(cell["d"])
    sys.path.insert(0, str(HERE.parent / "gp"))
    import ours
    import peers
    import problem

    kind = next(k for k in (*ours.CONTENDERS, *peers.CONTENDERS) if k.name == cell["contender"])
    data = problem.data(cell["n"])
    begin = time.perf_counter()
    model = kind(data.X, data.y)
    found = {"fit": time.perf_counter() - begin, "facts": model.facts()}
    jobs = {
        "append": lambda _: model.append(data.X_new, data.y_new).mean(data.Z[:1]),
        "predict": lambda _: model.predict(data.Z),
        "draw": lambda seed: model.draw(data.Z[: model.draw_points], seed),
    }
    for work in WORK:
        if work in kind.rows:
            times = []
            for number in range(ROUNDS + 1):
                begin, busy = time.perf_counter(), time.process_time()
                jobs[work](number)
                times.append((time.process_time() - busy, time.perf_counter() - begin))
            found[work], found[f"{work}_wall"] = map(
                statistics.median, zip(*times[1:], strict=True)
            )
    if cell["n"] <= JUDGED:
        exact = problem.Reference(data.X, data.y).predict(data.Z[:CHECKED])
        found["errors"] = problem.prediction_errors(model.predict(data.Z[:CHECKED]), exact)
    return found


def table(found):
    lines = ["| n | d | contender | append | predict | draw | error of the std | engine |"]
    lines.append("|---" * 8 + "|")
    for one in sorted(
        found, key=lambda one: (one["cell"]["d"] != 4, one["cell"]["d"], one["cell"]["n"])
    ):
        cell, got = one["cell"], one["found"]
        if "failed" in got:
            shown = ["not done"] * 3 + [""] * 2
        else:
            shown = [_time(got.get(work)) for work in WORK]
            shown.append(f"{100 * got['errors']['std_max']:.2g} %" if "errors" in got else "")
            facts = got["facts"]
            rank = f", rank {facts['rank']}" if facts.get("rank") else ""
            shown.append(facts.get("engine", "") + rank)
        lines.append(
            f"| {cell['n']:,} | {cell['d']} | {cell['contender']} | " + " | ".join(shown) + " |"
        )
    return "\n".join([*lines, "", *bars(found)])


def bars(found):
    """The goals, as ratios within this run: ten times the fastest peer of equal accuracy."""
    good = {
        (one["cell"]["contender"], one["cell"]["n"]): one["found"]
        for one in found
        if one["cell"]["d"] == 4 and "failed" not in one["found"]
    }
    own = good.get((CONTENDERS[0], 2_000))
    peers = {
        name: good[name, 2_000]
        for name in CONTENDERS[2:]
        if (name, 2_000) in good and good[name, 2_000]["errors"]["std_max"] <= ACCURATE
    }
    lines = []
    if own is None or not peers:
        return lines
    for work in WORK:
        times = {name: peer[work] for name, peer in peers.items() if work in peer}
        fastest = min(times, key=times.get)
        lines.append(
            f"- {work} at n = 2,000, d = 4: {times[fastest] / own[work]:.1f} times as fast as "
            f"{fastest}, the fastest peer (goal: 10)"
        )
    small, large = (good.get((CONTENDERS[0], n)) for n in (1_000, 20_000))
    if small and large:
        lines.append(
            f"- predict at n = 20,000 takes {large['predict'] / small['predict']:.2f} times as "
            "long as at n = 1,000 (goal: 1.5)"
        )
    return lines


def _time(seconds):
    if seconds is None:
        return ""
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def figure(found, path):
    import matplotlib.pyplot as plt

    picture, axes = plt.subplots(2, 3, figsize=(10, 6.5), sharey="col")
    for row, (fixed, varied, value) in enumerate((("d", "n", 4), ("n", "d", 2_000))):
        for axis, work in zip(axes[row], WORK, strict=True):
            for number, name in enumerate(CONTENDERS):
                own = sorted(
                    (one["cell"][varied], one["found"][work])
                    for one in found
                    if one["cell"]["contender"] == name
                    and one["cell"][fixed] == value
                    and work in one["found"]
                )
                if own:
                    style = {"color": f"C{number}", "label": name, "markersize": 4}
                    axis.loglog(*zip(*own, strict=True), "o-", **style)
            axis.set_title(f"{work}, {fixed} = {value:,}", fontsize=9)
            axis.set_xlabel(varied)
            if varied == "d":
                axis.set_xticks([1, 2, 4, 8], ["1", "2", "4", "8"])
                axis.minorticks_off()
        axes[row, 0].set_ylabel("seconds")
    lines, names = axes[0, 0].get_legend_handles_labels()
    picture.legend(lines, names, loc="lower center", ncol=3, fontsize=8)
    picture.tight_layout(rect=(0, 0.1, 1, 1))
    picture.savefig(path, dpi=110)
