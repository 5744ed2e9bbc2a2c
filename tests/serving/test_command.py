"""``kmdp serve``: a process that is killed in the middle of an episode."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import urllib.request

import pytest

from kmdp import main, serve

PLANT = """
horizon = 6
[states]
temperature = [0.0, 100.0]
[actions]
power = [0.0, 1.0]
"""


def started(path, folder):
    """A server in a process of its own, and its address."""
    command = [sys.executable, "-m", "kmdp", "serve", str(path), "--out", str(folder)]
    process = subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if line.startswith("listening on "):
            return process, line.split()[-1]
    raise AssertionError("the server did not start")


def post(address, path, **body):
    """Ask the server, as any client may."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}{path}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9")
def test_kill(tmp_path):
    """Every step that was acknowledged is in the episode."""
    path, folder = tmp_path / "heater.toml", tmp_path / "out"
    path.write_text(PLANT)
    process, address = started(path, folder)
    try:
        post(address, "/ask", observation=[20.0])
        actions = [post(address, "/act", observation=[20.0], period=0)["action"]]
        for period in (1, 2):
            body = {"observation": [20.0 + period], "reward": -float(period), "period": period}
            actions.append(post(address, "/act", **body)["action"])
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process, address = started(path, folder)
        # The client did not get the answer, say, and asks again: no step is counted twice.
        assert post(address, "/act", **body)["action"] == actions[2]
        for period in (3, 4, 5):
            body = {"observation": [20.0 + period], "reward": -float(period), "period": period}
            actions.append(post(address, "/act", **body)["action"])
        row = post(address, "/tell", observation=[26.0], reward=-6.0)
        assert (row["steps"], row["return"]) == (6, -21.0)
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
    lines = (folder / "episodes" / "000001.jsonl").read_text().splitlines()
    acted = [event for event in map(json.loads, lines) if event["event"] == "acted"]
    assert [event["action"] for event in acted] == actions
    assert (folder / "agent.kmdp").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--states", "temperature=0:100"], "--actions"),
        (["--states", "t", "--actions", "power=0:1", "--horizon", "3"], "name=low:high"),
        (["--states", "t=1:0", "--actions", "power=0:1", "--horizon", "3"], "lower one first"),
        ([], "--states"),
        (["heater.toml", "--seed", "1", "--set", "update=step"], "--seed, --set: only"),
        (["nothing.toml"], "not there"),
        (["heater.toml", "--sync", "never"], "--sync"),
        (["heater.toml", "--host", "0.0.0.0"], "token"),
        (["heater.toml", "--horizon", "0"], "horizon"),
    ],
)
def test_bad_options(options, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("heater.toml").write_text(PLANT)
    monkeypatch.setattr(sys, "argv", ["kmdp", "serve", *options])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert said in capsys.readouterr().err
    assert not pathlib.Path("runs").exists()


def test_a_plant_of_options(tmp_path, monkeypatch):
    """The server stops as soon as it has started."""
    monkeypatch.chdir(tmp_path)
    options = ["--states", "level=0:2,flow=-1:1", "--actions", "pump=0:1", "--horizon", "7"]
    options += ["--agent", "greedy", "--set", "planner=mpc", "--port", "0"]
    served = []

    def stop(server):
        served.append(server.service.agent)
        server.stop()

    monkeypatch.setattr(serve, "_started", stop)
    monkeypatch.setattr(sys, "argv", ["kmdp", "serve", *options])
    main()
    assert served[0].problem.coordinates == ("level", "flow")
    assert (served[0].name, served[0].problem.horizon) == ("greedy", 7)
    assert pathlib.Path("runs/plant-serve/episodes").is_dir()
