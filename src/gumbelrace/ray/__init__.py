"""Work on many machines by Ray: passes over tables in many files, and races. Needs the extra ``ray``."""

from typing import TYPE_CHECKING

from gumbelrace.lazy import later

_NAMES = {
    "gumbelrace.ray.ahead": ("population",),
    "gumbelrace.ray.cluster": ("Cluster",),
    "gumbelrace.ray.loaded": ("load_table",),
}

if TYPE_CHECKING:
    from gumbelrace.ray.ahead import population as population
    from gumbelrace.ray.cluster import Cluster as Cluster
    from gumbelrace.ray.loaded import load_table as load_table
else:  # hidden from type checkers, which would take any name at all
    __all__, __getattr__, __dir__ = later(__name__, _NAMES)
