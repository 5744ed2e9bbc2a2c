"""The arguments of theorems, from the text of a domain or from an environment."""

import re
from typing import Any

import numpy as np

from kernelmdp.domains import Box, Domain, FiniteSet, join
from kernelmdp.envs import Environment
from kernelmdp.errors import ArgumentError

#: A part of the text of a domain, such as "state=[-1,1]".
DOMAIN_PART = re.compile(r"\s*(state|action)\s*=\s*(.+?)\s*")
#: An interval with an optional power, such as "[-1,1]^2".
INTERVAL = re.compile(r"\[\s*([^,\]]+)\s*,\s*([^,\]]+)\s*\](?:\s*\^\s*(\d+))?")


def parse_domain(text: str) -> Domain:
    """Parse the text of a domain, such as "state=[-1,1]; action=[-1,1]^2".

    Args:
        text: The text. {n} stands for the numbers 0, …, n − 1.

    Returns:
        The domain of points z = (s, a).

    Raises:
        ArgumentError: If the text has another form.
    """
    parts: dict[str, Domain] = {}
    for piece in text.split(";"):
        match = DOMAIN_PART.fullmatch(piece)
        interval = match and INTERVAL.fullmatch(match[2])
        count = match and re.fullmatch(r"\{\s*(\d+)\s*\}", match[2])
        try:
            if match and interval:
                power = int(interval[3] or 1)
                parts[match[1]] = Box([float(interval[1])] * power, [float(interval[2])] * power)
                continue
        except ValueError:
            pass
        if not (match and count):
            raise ArgumentError("domain", '"state=[-1,1]; action=[-1,1]^2" or {5}', repr(piece))
        parts[match[1]] = FiniteSet.range(int(count[1]))
    if set(parts) != {"state", "action"}:
        raise ArgumentError("domain", "state=... and action=...", repr(text))
    return join(state=parts["state"], action=parts["action"])


def environment_arguments(env: Environment) -> dict[str, Any]:
    """Collect the arguments of theorems from an environment, in the units of learning.

    Args:
        env: The environment.

    Returns:
        Kernels, domain, norms, noise and L, by argument name. Unknown ones are left out.
    """
    mdp, outputs = env.agent_mdp, env.problem.transition_kernel.outputs
    scale = np.array(env.problem.scale)
    low, high = mdp.states.bounds
    arguments = {
        "reward_kernel": env.problem.reward_kernel,
        "transition_kernel": env.problem.transition_kernel,
        "domain": mdp.points,
        "horizon": mdp.horizon,
        "norm_reward": env.problem.norm_reward,
        "norm_transition": env.problem.norm_transition,
        "reward_noise": float(mdp.reward_noise.sub_gaussian_proxies(1).max()),
        "transition_noise": float(
            (mdp.transition_noise.sub_gaussian_proxies(outputs) / scale).max()
        ),
        "lipschitz": env.problem.lipschitz,
    }
    if len(scale) == len(low):
        arguments["diameter"] = float(np.linalg.norm((high - low) / scale))
    return {name: value for name, value in arguments.items() if value is not None}


def domain_diameter(domain: Domain) -> float:
    """Compute the diameter of the states of a domain.

    Args:
        domain: The domain of points z = (s, a).

    Returns:
        The length of the diagonal of the box.
    """
    low, high = domain.project(domain.names["state"]).bounds
    return float(np.linalg.norm(high - low))
