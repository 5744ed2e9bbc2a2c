"""The sixteen plants, and their split into two halves.

The rule of the split was fixed before any agent was run: sort the names by the SHA-256 hex digest
of the name. The first eight are for development. The other eight are held back, and agents are
only run on them once, at the end.
"""

import hashlib

from biology import Epidemic, Glucose, Harvest
from electrical import BoostConverter, DCMotor, MagneticLevitation
from logistics import Inventory, Queue
from mechanical import HillCar, Quadrotor, RotaryPendulum, TwoLinkArm
from plant import Plant
from process import CoupledTanks, Reactor
from tasks import TASKS
from thermal import RoomChain, ThermalZone

PLANTS: dict[str, type[Plant]] = {
    plant.name: plant
    for plant in (
        CoupledTanks,
        Reactor,
        ThermalZone,
        RoomChain,
        RotaryPendulum,
        Quadrotor,
        TwoLinkArm,
        HillCar,
        DCMotor,
        BoostConverter,
        MagneticLevitation,
        Inventory,
        Queue,
        Glucose,
        Epidemic,
        Harvest,
    )
}


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


_BY_DIGEST = sorted(PLANTS, key=_digest)
DEVELOPMENT = tuple(_BY_DIGEST[:8])
HELD_BACK = tuple(_BY_DIGEST[8:])


def select(names: list[str]) -> list[str]:
    """Return the names of plants and tasks. The names of groups stand for many."""
    groups = {"development": DEVELOPMENT, "held-back": HELD_BACK, "tasks": tuple(TASKS)}
    chosen = [plant for name in names for plant in groups.get(name, (name,))]
    unknown = [name for name in chosen if name not in PLANTS and name not in TASKS]
    if unknown:
        known = ", ".join([*groups, *PLANTS, *TASKS])
        raise SystemExit(f"plants: expected names among {known}; got {unknown[0]!r}")
    return list(dict.fromkeys(chosen))
