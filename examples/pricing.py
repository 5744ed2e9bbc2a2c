"""Dynamic pricing: what to charge each week for stock that must be gone by the season's end.

State: the level of demand (word of mouth) and what is left in stock. Action: this week's price. A
low price sells at once and makes demand grow; a high price later earns on it. Neither the demand
curve nor the growth is known: every season played teaches them, and is paid for in revenue.

    python examples/pricing.py --out pricing.png
"""

import argparse

import jax
import jax.numpy as jnp
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import kernelmdp as km
from kernelmdp.mdp import MDP, Gaussian, MeanModel, monte_carlo_value
from kernelmdp.mdp.policy import OpenLoopPolicy

WEEKS, STOCK = 12, 10.0
START = (0.2, STOCK)  # hardly anybody knows the product yet


# --8<-- [start:truth]
def sales(z: jax.Array) -> jax.Array:
    """Mean sales of a week at points z = (demand level, stock, price), at most the stock."""
    level, stock, price = z[:, 0], jnp.maximum(z[:, 1], 1e-6), z[:, 2]
    wanted = 3.0 * level * jnp.exp(-1.2 * price)
    return stock * (1 - jnp.exp(-wanted / stock))


def revenue(z: jax.Array) -> jax.Array:
    """Mean revenue of a week."""
    return z[:, 2] * sales(z)


def next_week(z: jax.Array) -> jax.Array:
    """Mean demand level and stock a week later."""
    level = z[:, 0] + 0.05 * (0.6 - z[:, 0]) + 0.6 * (0.7 - z[:, 2])
    return jnp.stack([level, z[:, 1] - sales(z)], axis=1)


def shop() -> km.envs.Environment:
    """The truth, and what is believed of it beforehand: smoothness, in the form of two kernels."""
    mdp = MDP(
        MeanModel(revenue, next_week),
        states=km.Box(low=[0.0, 0.0], high=[1.5, STOCK]),
        actions=km.Box(low=[0.2], high=[1.0]),
        horizon=WEEKS,
        reward_noise=Gaussian(0.1),
        transition_noise=Gaussian([0.03, 0.2]),
        reward_range=(0.0, 2.0),
        metric=(0.2, 1.0),
    )
    smooth = km.kernel("se([1.0, 6.0, 0.6])")  # lengthscales of level, stock and price
    return km.Environment.of(
        mdp,
        start=START,
        name="shop",
        reward_kernel=smooth,
        transition_kernel=smooth @ km.kernels.Index(2),
        offset="identity",  # changes are learned,
        scale=(0.2, 1.0),  # in units of a typical one
        state_points=(31, 31),
        action_points=(17,),
        optimum_points=((61, 61), (33,)),
    )


# --8<-- [end:truth]


def best_fixed_price(env: km.envs.Environment) -> tuple[float, float]:
    """The one price for all weeks that earns most, and what it earns: with hindsight."""
    earned = {
        price: monte_carlo_value(
            env.mdp,
            OpenLoopPolicy(jnp.full((WEEKS, 1), price)),
            START,
            episodes=2000,
            key=jax.random.key(0),
        ).value
        for price in np.linspace(0.2, 1.0, 17)
    }
    price = max(earned, key=earned.__getitem__)
    return float(price), earned[price]


def main() -> None:
    """Play seasons with three agents; draw what they earn, and the prices of the last of them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", default="pricing.png", help="where the figure goes")
    parser.add_argument("--episodes", type=int, default=30, help="seasons")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--agents", nargs="+", default=["greedy", "psrl", "gp-ucrl"])
    options = parser.parse_args()
    env = shop()
    optimum, (price, fixed) = env.optimal_value(), best_fixed_price(env)
    print(f"optimum {optimum.value:.2f} ± {optimum.error:.2g}, at price {price:.2f} {fixed:.2f}")
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
    agents = {name: km.agents.AGENTS[name](env, seed=options.seed) for name in options.agents}
    for name, agent in agents.items():
        result = agent.learn(options.episodes, progress=False)
        table = result.episodes
        left.plot(table["episode"], table["value"], ".-", label=name)
        print(f"{name:8} last value {table['value'][-1]:.2f}, regret {result.regret:.2f}")
    left.axhline(optimum.value, color="black", ls="--", label="optimum, model known")
    left.axhline(fixed, color="grey", ls=":", label=f"best fixed price, {price:.2f}")
    left.set(xlabel="season", ylabel="expected revenue of the season's plan")
    left.legend(frameon=False, loc="lower right")
    oracle = km.Oracle(env, seed=options.seed)
    oracle.learn(1, progress=False)
    for label, told in (
        (f"{name}, first season", agent.history[0]),
        (f"{name}, season {options.episodes}", agent.history[-1]),
        ("optimal policy", oracle.history[0]),
    ):
        right.plot(np.arange(1, WEEKS + 1), told.actions[:, 0], ".-", label=label)
    right.set(xlabel="week", ylabel="price", ylim=(0.15, 1.5))
    right.legend(frameon=False, loc="upper left")
    figure.savefig(options.out, dpi=100)
    print(f"figure: {options.out}")


if __name__ == "__main__":
    main()
