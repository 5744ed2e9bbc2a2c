"""Planners: an MDP, or a family of plausible ones, in; a policy with its planned value out."""

from kernelmdp.planners.grid import GridPlanner, GridPolicy, Plan

__all__ = ["GridPlanner", "GridPolicy", "Plan"]
