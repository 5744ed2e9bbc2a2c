"""The service without HTTP: episodes, what is refused, and what is on disk."""

import json
import threading

import numpy as np
import pytest

import kernelmdp as km
from kernelmdp.errors import ArgumentError, CheckpointError, StorageError
from kernelmdp.serving import RequestError, Service, open_agent
from tests.serving.conftest import plant


def play(service, steps=4, start=20.0, **ending):
    """One episode: the observations, and the answers of act."""
    service.ask([start])
    observations, answers = [[start]], []
    for period in range(steps):
        reward = None if period == 0 else -float(period)
        answers.append(service.act(observations[-1], reward, period=period))
        observations.append([observations[-1][0] + 5.0 * answers[-1]["action"][0]])
    row = service.tell(observations[-1], -float(steps), **ending)
    return observations, answers, row


def test_an_episode_is_learned_from(service):
    observations, answers, row = play(service)
    assert row == {
        "episode": 1,
        "steps": 4,
        "return": -10.0,
        "terminated": False,
        "learned": True,
    }
    episode = service.agent.history[0]
    np.testing.assert_array_equal(episode.states, observations)
    np.testing.assert_array_equal(episode.actions, [answer["action"] for answer in answers])
    assert service.episodes() == [{k: row[k] for k in row if k != "learned"}]
    assert service.health() == {"status": "ready", "episode": None, "period": None, "episodes": 1}
    _, _, second = play(service, steps=2, terminated=True)
    assert (second["episode"], second["steps"], second["terminated"]) == (2, 2, True)


def test_it_acts_as_the_policy_that_the_agent_asked_for(service):
    agent = plant().make_agent()
    observations, answers, _ = play(service)
    policy = agent.ask(observations[0])
    for period, answer in enumerate(answers):
        assert answer["action"] == policy(observations[period], period).tolist()


def test_requests_that_do_not_fit_are_refused(service):
    for request in (lambda: service.act([20.0]), lambda: service.tell([20.0], 1.0)):
        with pytest.raises(RequestError, match="POST /ask first"):
            request()
    service.ask([20.0])
    service.ask([20.0])  # nothing has happened yet
    with pytest.raises(RequestError, match="no action yet"):
        service.act([20.0], reward=1.0)
    with pytest.raises(RequestError, match="period 0, not in period 1"):
        service.act([20.0], period=1)
    service.act([20.0])
    with pytest.raises(RequestError, match="reward: expected"):
        service.act([21.0])
    with pytest.raises(RequestError, match="is under way, in period 1"):
        service.ask([20.0])
    with pytest.raises(RequestError, match="not episode 7"):
        service.tell([20.0], 1.0, episode=7)
    with pytest.raises(RequestError, match="terminal state"):
        service.tell(terminated=True)
    with pytest.raises(RequestError, match="is under way"):
        service.tell_episode(states=[[0.0], [0.0]], actions=[[0.0]], rewards=[0.0], truncated=True)
    for bad in ([1.0, 2.0], [float("nan")]):
        with pytest.raises(ArgumentError, match="observation"):
            service.act(bad, reward=1.0)
    for period in range(1, 4):
        service.act([20.0], reward=0.0, period=period)
    with pytest.raises(RequestError, match="4 periods: POST /tell"):
        service.act([20.0], reward=0.0)
    assert service.health()["period"] == 4
    assert service.tell([20.0], 0.0)["return"] == 0.0


def test_repeated_requests_get_the_same_answer(service):
    service.ask([20.0])
    first = service.act([20.0], period=0)
    assert service.act([20.0], period=0) == first
    with pytest.raises(RequestError, match="differently"):
        service.act([21.0], period=0)
    second = service.act([21.0], reward=-1.0, period=1)
    assert service.act([21.0], reward=-1.0, period=1) == second
    row = service.tell([22.0], -2.0, episode=1)
    assert row["return"] == -3.0
    assert service.tell([22.0], -2.0, episode=1) == row
    assert len(service.agent.history) == 1


def test_other_requests_are_refused_meanwhile(service, monkeypatch):
    entered, leave = threading.Event(), threading.Event()
    ask = service.agent.ask

    def slow(state):
        entered.set()
        assert leave.wait(60)
        return ask(state)

    monkeypatch.setattr(service.agent, "ask", slow)
    thread = threading.Thread(target=service.ask, args=([20.0],))
    thread.start()
    assert entered.wait(60)
    assert service.health()["status"] == "planning"
    with pytest.raises(RequestError, match="planning"):
        service.act([20.0])
    leave.set()
    thread.join()
    assert service.act([20.0])["period"] == 0


def test_the_last_step_may_be_left_out(service):
    service.ask([20.0])
    service.act([20.0])
    service.act([21.0], reward=-1.0)
    row = service.tell()  # nobody knows what the second action did
    assert (row["steps"], row["return"]) == (1, -1.0)
    service.ask([20.0])
    service.act([20.0])
    assert service.tell() == {"episode": 2, "steps": 1, "learned": False}
    assert service.ask([20.0])["episode"] == 2


def test_a_recorded_episode_is_told(service):
    states = [[20.0], [25.0], [30.0]]
    row = service.tell_episode(
        states=states, actions=[[1.0], [1.0]], rewards=[-2.0, -1.0], truncated=True
    )
    assert (row["episode"], row["return"]) == (1, -3.0)
    with pytest.raises(ArgumentError, match="states"):
        service.tell_episode(states=states, actions=[[1.0]], rewards=[-2.0], truncated=True)
    service.ask([20.0])
    service.tell_episode(states=states, actions=[[1.0]] * 2, rewards=[0.0] * 2, truncated=True)
    assert service.ask([20.0])["episode"] == 3
    assert [row["steps"] for row in service.episodes()] == [2, 2]


def restarted(service, **options):
    """The service of a new process in the same folder. The old one did not end in order."""
    service._resources.close()  # a process that is killed loses its lock
    return Service(plant().make_agent(), service.folder, **options)


def test_an_episode_under_way_is_resumed(service):
    play(service)
    service.ask([20.0])
    answers = [service.act([20.0]), service.act([21.0], reward=-1.0)]
    with restarted(service) as resumed:
        assert resumed.health()["period"] == 2
        assert len(resumed.agent.history) == 1
        assert resumed.act([21.0], reward=-1.0, period=1) == answers[1]
        resumed.act([22.0], reward=-2.0, period=2)
        resumed.tell([23.0], -3.0)
        episode = resumed.agent.history[1]
    np.testing.assert_array_equal(episode.states[:, 0], [20.0, 21.0, 22.0, 23.0])
    np.testing.assert_array_equal(episode.rewards, [-1.0, -2.0, -3.0])
    np.testing.assert_array_equal(episode.actions[0], answers[0]["action"])


def test_a_plan_is_the_same_after_a_restart(service):
    play(service)
    expected = service.agent.ask([20.0])([20.0], 0)
    service.ask([20.0])
    with restarted(service) as resumed:
        assert resumed.health()["period"] == 0
        assert resumed.act([20.0])["action"] == expected.tolist()


def test_an_episode_is_learned_from_if_the_server_ended_before(service, monkeypatch):
    monkeypatch.setattr(service, "_learn", lambda episode: {})  # killed while it learns
    play(service)
    with restarted(service) as resumed:
        assert [row["return"] for row in resumed.episodes()] == [-10.0]
        assert resumed.health()["episode"] is None


def test_a_recorded_episode_is_learned_from_if_the_server_ended_before(service, monkeypatch):
    monkeypatch.setattr(service, "_learn", lambda episode: {})
    states = [[20.0], [25.0]]
    service.tell_episode(states=states, actions=[[1.0]], rewards=[-2.0], truncated=True)
    with restarted(service) as resumed:
        assert [row["return"] for row in resumed.episodes()] == [-2.0]


def test_a_line_that_was_cut_short_is_dropped(service):
    service.ask([20.0])
    service.act([20.0])
    service.act([21.0], reward=-1.0)
    path = service.folder / "episodes" / "000001.jsonl"
    service._journal.close()
    content = path.read_bytes()
    path.write_bytes(content[:-20])  # within the line of the second action
    with restarted(service) as resumed:
        assert resumed.health()["period"] == 1
        resumed.act([21.0], reward=-1.0)
        resumed.tell([22.0], -2.0)
        assert resumed.episodes()[0]["return"] == -3.0
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["event"] for event in events][-2:] == ["acted", "ended"]


def test_a_damaged_journal_is_an_error(service):
    service.ask([20.0])
    service._journal.close()
    (service.folder / "episodes" / "000001.jsonl").write_bytes(b"no json\n{}\n")
    with pytest.raises(StorageError, match="damaged"):
        restarted(service)


def test_a_full_disk_is_an_error_and_loses_nothing(service, monkeypatch):
    service.ask([20.0])
    first = service.act([20.0])

    class Full:
        def __init__(self, file):
            self.file = file

        def write(self, line):
            return self.file.write(line[:5])

        def __getattr__(self, name):
            return getattr(self.file, name)

    monkeypatch.setattr(service._journal, "_file", Full(service._journal._file))
    with pytest.raises(StorageError):
        service.act([21.0], reward=-1.0)
    with restarted(service) as resumed:
        assert resumed.act([20.0], period=0) == first


def test_late_decisions_are_journaled(tmp_path):
    settings = {"planner": {"name": "mpc", "horizon": 4, "samples": 16, "first_rounds": 1}}
    agent = plant(settings=settings | {"first_episode": "prior"}).make_agent()
    with Service(agent, tmp_path, time_limit=1e-9) as service:
        _, answers, _ = play(service)
    assert answers[0]["source"] == "plan"  # planned by ask
    assert {answer["source"] for answer in answers[1:]} <= {"late", "held"}
    lines = (tmp_path / "episodes" / "000001.jsonl").read_text().splitlines()
    acted = [event for event in map(json.loads, lines) if event["event"] == "acted"]
    assert [event["source"] for event in acted] == [answer["source"] for answer in answers]


def calls_of(journal, monkeypatch):
    """What is done with a journal, in this order."""
    calls = []

    def note(name):
        method = getattr(journal, name)

        def noted(*content):
            calls.append(content[0]["event"] if content else name)
            return method(*content)

        monkeypatch.setattr(journal, name, noted)

    for name in ("append", "start_sync", "wait"):
        note(name)
    return calls


def test_an_answer_waits_for_the_disk(service, monkeypatch):
    """The disk works while the action is decided."""
    service.ask([20.0])
    calls = calls_of(service._journal, monkeypatch)
    service.act([20.0])
    assert [call for call in calls if call != "wait"] == ["observed", "start_sync", "acted"]
    assert calls[-1] == "wait"


def test_the_disk_may_follow(tmp_path, monkeypatch):
    with Service(plant().make_agent(), tmp_path, waits_for_disk=False) as service:
        service.ask([20.0])
        calls = calls_of(service._journal, monkeypatch)
        service.act([20.0])
        assert calls[-1] == "acted"
        monkeypatch.undo()
        service.tell()
        play(service)
        lines = (tmp_path / "episodes" / "000001.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    act = ["observed", "acted"]
    assert events == ["ask", *act, "ended", "ask", *(4 * act), "ended"]


def test_predict_learns_nothing_and_goes_on(tmp_path):
    agent = km.Greedy("lqr-1d", seed=0)
    agent.learn(episodes=1, progress=False)
    agent.save(tmp_path / "agent.kmdp")
    H = agent.problem.horizon
    with Service(open_agent(tmp_path / "agent.kmdp"), tmp_path / "out", learns=False) as service:
        service.ask()
        for period in range(H + 1):
            answer = service.act([0.3])
            rule = min(period, H - 1)
            assert answer["action"] == agent.predict([0.3], rule).tolist()
        assert service.tell()["learned"] is False
        assert len(service.agent.history) == 1
        assert service.ask()["episode"] == 2
        service.act([0.3])
        service.tell()
        with pytest.raises(RequestError, match="--predict"):
            service.tell_episode(states=[[0.0], [0.0]], actions=[[0.0]], rewards=[0.0])
    with Service(open_agent(tmp_path / "agent.kmdp"), tmp_path / "out", learns=False) as service:
        assert service.ask()["episode"] == 3


def test_a_saved_agent_goes_on_learning(tmp_path):
    agent = km.Greedy("lqr-1d", seed=0)
    agent.learn(episodes=1, progress=False)
    agent.save(tmp_path / "agent.kmdp")
    with Service(open_agent(tmp_path / "agent.kmdp"), tmp_path / "out") as service:
        assert service.ask([0.3])["episode"] == 2
        service.act([0.3])
        service.tell([0.2], -1.0)
    loaded = km.load(tmp_path / "out" / "agent.kmdp")
    assert [len(episode) for episode in loaded.history] == [agent.problem.horizon, 1]


def test_the_agent_of_a_run_is_served(tmp_path):
    km.experiments.run(km.experiments.RunConfig("riverswim", "psrl"), tmp_path / "run", episodes=2)
    with Service(open_agent(tmp_path / "run"), tmp_path / "out") as service:
        assert service.ask([0])["episode"] == 3


def test_folders_of_other_agents_are_refused(tmp_path, service):
    play(service)
    service.close()
    for changes, error in (
        ({"seed": 1}, ArgumentError),
        ({"settings": {}}, ArgumentError),
        ({"horizon": 5}, CheckpointError),
    ):
        with pytest.raises(error):
            Service(plant(**changes).make_agent(), service.folder)
    with Service(plant().make_agent(), service.folder):
        with pytest.raises(ArgumentError, match="no other process"):
            Service(plant().make_agent(), service.folder)
    stepwise = plant(settings={"update": "step"}).make_agent()
    with pytest.raises(ArgumentError, match="update"):
        Service(stepwise, tmp_path / "other")
