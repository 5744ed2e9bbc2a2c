"""What a callback of ``learn`` is: an object that is told what happens, and may stop it.

>>> CallbackList.of(None).callbacks
[]
"""

from collections.abc import Callable
from typing import Any

from kernelmdp.agents.evaluation import Evaluation
from kernelmdp.errors import ArgumentError


class Callback:
    """Is told what happens while an agent learns. Override the moments that you need.

    >>> class Notes(Callback):
    ...     def on_episode_end(self, agent, row):
    ...         print(f"episode {row['episode']}")
    >>> import kernelmdp as km
    >>> result = km.Random("riverswim", seed=0).learn(2, callback=Notes(), progress=False)
    episode 1
    episode 2
    """

    def on_start(self, agent: Any) -> None:
        """Called before the first episode.

        Args:
            agent: The agent.
        """

    def on_episode_end(self, agent: Any, row: dict[str, Any]) -> bool | None:
        """Called after the agent has learned from an episode.

        Args:
            agent: The agent.
            row: The numbers of the episode, such as "episode" and "return".

        Returns:
            False to stop learning. None and True go on.
        """

    def on_new_best(self, agent: Any, evaluation: Evaluation) -> None:
        """Called when an evaluation was better than all before, for example of ``Evaluate``.

        Args:
            agent: The agent.
            evaluation: The evaluation.
        """

    def on_stop(self, agent: Any) -> None:
        """Called once at the end, also after an error or Ctrl-C.

        Args:
            agent: The agent.
        """


class FunctionCallback(Callback):
    """Calls a function after every episode.

    Args:
        function: A function of agent and row. It stops learning if it returns False.

    >>> FunctionCallback(lambda agent, row: row["return"] < 1).on_episode_end(None, {"return": 2})
    False
    """

    def __init__(self, function: Callable[[Any, dict[str, Any]], bool | None]) -> None:
        self.function = function

    def on_episode_end(self, agent: Any, row: dict[str, Any]) -> bool | None:
        return self.function(agent, row)


class CallbackList(Callback):
    """Calls several callbacks, one after another.

    Args:
        callbacks: The callbacks.

    >>> len(CallbackList.of([Callback(), print]).callbacks)
    2
    """

    def __init__(self, callbacks: list[Callback]) -> None:
        self.callbacks = callbacks

    @classmethod
    def of(cls, callback: Any) -> "CallbackList":
        """Make a list of what users pass as ``callback``.

        Args:
            callback: None, a callback, a function of agent and row, or a list of these.

        Returns:
            The list.

        Raises:
            ArgumentError: If it is none of these.
        """
        given = callback if isinstance(callback, list | tuple) else [callback]
        callbacks = []
        for each in given:
            if isinstance(each, Callback):
                callbacks.append(each)
            elif callable(each) and not isinstance(each, type):
                callbacks.append(FunctionCallback(each))
            elif each is not None:
                expected = "a Callback, a function of (agent, row), or a list of these"
                raise ArgumentError("callback", expected, repr(each))
        return cls(callbacks)

    def on_start(self, agent: Any) -> None:
        for callback in self.callbacks:
            callback.on_start(agent)

    def on_episode_end(self, agent: Any, row: dict[str, Any]) -> bool | None:
        best, goes_on = agent.best, True
        for callback in self.callbacks:
            goes_on = callback.on_episode_end(agent, row) is not False and goes_on
        if agent.best is not None and agent.best is not best:
            self.on_new_best(agent, agent.best)
        return goes_on

    def on_new_best(self, agent: Any, evaluation: Evaluation) -> None:
        for callback in self.callbacks:
            callback.on_new_best(agent, evaluation)

    def on_stop(self, agent: Any) -> None:
        for callback in self.callbacks:
            callback.on_stop(agent)
