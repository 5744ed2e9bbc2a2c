"""The six systems that must not break."""

from constrained import ConstrainedPlant
from corridor import QuadrotorCorridor
from fluids import ReactorRunaway, TankOverflow
from patient import GlucoseFloor
from pendulums import CartPoleTrack, PendulumSpeed

SYSTEMS: dict[str, type[ConstrainedPlant]] = {
    system.name: system
    for system in (
        PendulumSpeed,
        CartPoleTrack,
        TankOverflow,
        ReactorRunaway,
        QuadrotorCorridor,
        GlucoseFloor,
    )
}


def select(names: list[str]) -> list[str]:
    """Return the names of systems. "all" stands for the six."""
    chosen = [system for name in names for system in (SYSTEMS if name == "all" else (name,))]
    unknown = [name for name in chosen if name not in SYSTEMS]
    if unknown:
        known = ", ".join(["all", *SYSTEMS])
        raise SystemExit(f"systems: expected names among {known}; got {unknown[0]!r}")
    return list(dict.fromkeys(chosen))
