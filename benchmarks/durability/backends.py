"""The same study in one process, in two, and on a Ray cluster that loses a worker half-way.

python benchmarks/durability/backends.py

Two agents, two environments, five seeds. All three must give the same episodes.csv (but for the
times) and the same agents, byte for byte. The cluster has two nodes of one worker each, started
here; when half of the episodes are there one node is killed.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import tempfile
import threading
import time

from kernelmdp.experiments import study


def content(folder: pathlib.Path) -> dict[str, tuple[list[list[str]], bytes]]:
    """Rows without times and the agent, of every trial."""
    found = {}
    for trial in sorted((folder / "trials").iterdir()):
        lines = (trial / "episodes.csv").read_text().splitlines()
        kept = [i for i, name in enumerate(lines[0].split(",")) if not name.endswith("seconds")]
        rows = [[line.split(",")[place] for place in kept] for line in lines]
        found[trial.name] = rows, (trial / "checkpoint").read_bytes()
    return found


def episodes(folder: pathlib.Path) -> int:
    return sum(
        max(0, path.read_bytes().count(b"\n") - 1) for path in folder.glob("trials/*/episodes.csv")
    )


def on_cluster(words: dict, folder: pathlib.Path, half: int) -> None:
    """Two nodes, of which one is killed when ``half`` episodes are there."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]

    def kill() -> None:
        while episodes(folder) < half:
            time.sleep(0.1)
        cluster.remove_node(nodes[1], allow_graceful=False)
        print(f"  killed a node after {episodes(folder)} episodes", flush=True)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    try:
        found = study(words, out=folder, backend="ray", address=cluster.address)
        assert not found.failed, found.failed
        assert not killer.is_alive(), "nothing was killed"
    finally:
        cluster.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    words = {
        "name": "backends",
        "episodes": options.episodes,
        "seeds": options.seeds,
        "environments": [
            {"name": "rkhs", "options": {"horizon": 3}},
            {"name": "riverswim"},
        ],
        "agents": [{"name": "psrl"}, {"name": "random"}],
    }
    total = 4 * options.seeds * options.episodes
    with tempfile.TemporaryDirectory() as home:
        folders = {name: pathlib.Path(home) / name for name in ("one", "two", "ray")}
        for name, folder in folders.items():
            begin = time.monotonic()
            if name == "ray":
                on_cluster(words, folder, total // 2)
            else:
                found = study(words, out=folder, jobs=1 if name == "one" else 2)
                assert not found.failed, found.failed
            print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)
        contents = {name: content(folder) for name, folder in folders.items()}
    same = {name: contents[name] == contents["one"] for name in ("two", "ray")}
    print(f"{len(contents['one'])} trials; as in one process: {same}")
    sys.exit(0 if all(same.values()) else 1)


if __name__ == "__main__":
    main()
