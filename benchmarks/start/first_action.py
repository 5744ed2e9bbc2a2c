"""Time from the start of Python to the first planned action, with and without kept programs.

    .venv/bin/python benchmarks/start/first_action.py --coordinates 4 10

Each measurement is a new process: it imports the library, makes an agent for a Gymnasium
environment of which nothing is told, plays one random episode, and asks for the first planned
action. "cold" begins with an empty folder of programs, "kept" repeats the same. Times are
seconds of the processor.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time


def measure(coordinates: int, agent_name: str, names: bool) -> dict[str, float]:
    """Measure one start in this process."""
    import jax

    after_jax = time.process_time()
    import kernelmdp as km
    from kernelmdp.agents import AGENTS
    from kernelmdp.numerics.compiled_programs import COMPILATIONS

    after_import = time.process_time()
    spent: dict[str, list[float]] = {}

    def record(event: str, seconds: float, fun_name: str = "", **_: object) -> None:
        if "/core/compile/" in event:
            spent.setdefault(fun_name, [0.0, 0.0, 0])
            spent[fun_name]["backend" in event] += seconds
            spent[fun_name][2] += "backend" in event

    jax.monitoring.register_event_duration_secs_listener(record)
    from chain import Chain

    chain = Chain(coordinates)
    agent = AGENTS[agent_name](km.from_gymnasium(chain, horizon=50), seed=0)
    agent.learn(episodes=1, progress=False)
    learned = time.process_time()
    policy = agent.ask(chain.reset(seed=1)[0])
    policy(chain.reset(seed=1)[0], 0)
    planned = time.process_time()
    agent.predict(chain.reset(seed=1)[0], 0)
    second = time.process_time()
    if names:
        rows = sorted(spent.items(), key=lambda item: -sum(item[1][:2]))[:25]
        for name, (tracing, compiling, count) in rows:
            print(f"  {name:40s} traced {tracing:6.2f}  compiled {compiling:6.2f}  x{count}")
    return {
        "import jax": after_jax,
        "import kernelmdp": after_import - after_jax,
        "first episode": learned - after_import,
        "first plan": planned - learned,
        "total": planned,
        "first predict": second - planned,
        "programs": COMPILATIONS.programs,
        "read": COMPILATIONS.read,
        "compiling": COMPILATIONS.seconds,
        "tracing": COMPILATIONS.tracing_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--coordinates", type=int, nargs="+", default=[4, 10])
    parser.add_argument("--agents", nargs="+", default=["psrl", "frugal"])
    parser.add_argument("--names", action="store_true", help="print the slowest programs")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        row = measure(chosen.coordinates[0], chosen.agents[0], chosen.names)
        print(json.dumps(row))
        return
    for agent in chosen.agents:
        for coordinates in chosen.coordinates:
            with tempfile.TemporaryDirectory() as folder:
                for label in ("cold", "kept"):
                    options = ["--worker", "--agents", agent, "--coordinates", str(coordinates)]
                    options += ["--names"] if chosen.names else []
                    process = subprocess.run(
                        [sys.executable, __file__, *options],
                        env=os.environ | {"KERNELMDP_PROGRAMS": folder},
                        stdout=subprocess.PIPE,
                        text=True,
                        check=True,
                    )
                    *lines, last = process.stdout.splitlines()
                    print(f"{agent}, {coordinates} coordinates, {label}", flush=True)
                    print("\n".join(lines), end="\n" if lines else "")
                    row = json.loads(last)
                    print("  " + ", ".join(f"{name} {n:.4g}" for name, n in row.items()))


if __name__ == "__main__":
    main()
