"""Logged data: tables of rows that were recorded before, as episodes to learn from.

``Agent.tell_csv`` and ``Agent.tell_frame`` use this.
"""

from kernelmdp.logs.log_columns import LogColumns, Table
from kernelmdp.logs.log_report import LogReport
from kernelmdp.logs.logged_episodes import LoggedEpisode, logged_episodes

__all__ = ["LogColumns", "LogReport", "LoggedEpisode", "Table", "logged_episodes"]
