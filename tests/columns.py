"""The columns of a run of GP-UCRL with fixed kernels, as its parts declare them."""

COLUMNS = (
    "episode",
    "return",
    "value",
    "optimal_value",
    "optimal_value_error",
    "regret",
    "cumulative_regret",
    "beta_reward",
    "beta_transition",
    "gain_reward",
    "gain_transition",
    "covered_reward",
    "covered_transition",
    "width_reward",
    "width_transition",
    "planned_value",
    "planning_error",
    "plan_seconds",
    "update_seconds",
)
