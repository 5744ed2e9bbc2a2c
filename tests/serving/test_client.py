"""The example of a client, in a process without this library, learns from a served agent."""

import pathlib
import subprocess
import sys

from kernelmdp.serving import Plant, Service
from tests.serving.conftest import SETTINGS, running

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def test_the_client_needs_the_standard_library_only(tmp_path):
    agent = Plant.of(
        {
            "name": "oven",
            "states": {"temperature": [0.0, 160.0]},
            "actions": {"power": [0.0, 1.0]},
            "horizon": 5,
            "settings": SETTINGS,
        }
    ).make_agent()
    program = ["-I", "-S", str(EXAMPLES / "serve_client.py"), "--episodes", "2", "--address"]
    with Service(agent, tmp_path / "oven") as service:
        with running(service, token="open sesame") as (_, server):
            command = [sys.executable, *program, server.url]
            options = {"capture_output": True, "text": True, "timeout": 300}
            refused = subprocess.run(command, **options, env={})
            assert "Bearer" in refused.stderr
            done = subprocess.run(command, **options, env={"KMDP_TOKEN": "open sesame"})
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[1].startswith("episode 2: return ")
        assert [row["steps"] for row in service.episodes()] == [5, 5]


def test_the_description_of_its_plant():
    assert Plant.read(EXAMPLES / "oven.toml").problem.name == "oven"
