"""What lies where in a NumPyro model: the plate over rows, and the latent sites outside of it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gumbelrace.errors import InvalidArgument

# As `numpyro.handlers.trace` gives them.
Sites = Mapping[str, Any]

HOW = "put the observed rows into one `with numpyro.plate('rows', N):`"


class Plate(NamedTuple):
    """The plate over rows."""

    name: str
    size: int


def plates_of(site: Any) -> dict[str, int]:
    """Give the plates in which a site lies, and the dimension of each."""
    return {frame.name: frame.dim for frame in site["cond_indep_stack"]}


def is_latent(site: Any) -> bool:
    """Whether a site is drawn."""
    return bool(site["type"] == "sample" and not site["is_observed"])


def is_observed(site: Any) -> bool:
    """Whether a site is data."""
    return bool(site["type"] == "sample" and site["is_observed"])


def plate_of_rows(sites: Sites) -> Plate:
    """Find the one plate whose observed sites are the rows; of nested ones, the largest."""
    stacks = [set(plates_of(site)) for site in sites.values() if is_observed(site)]
    inside = [stack for stack in stacks if stack]
    if not inside:
        raise InvalidArgument(f"the model has no plate with observed sites; {HOW}")
    common = set.intersection(*inside)
    if not common:
        names = ", ".join(sorted(set.union(*inside)))
        raise InvalidArgument(f"observed sites lie in several plates ({names}); {HOW}")
    name = max(sorted(common), key=lambda one: sites[one]["args"][0])
    return Plate(name, int(sites[name]["args"][0]))


def latent_sites(sites: Sites, plate: Plate) -> Sequence[str]:
    """Name the latent sites, if all are continuous and none lies in the plate over rows."""
    latent = [site for site in sites.values() if is_latent(site)]
    for site in latent:
        if site["fn"].support.is_discrete:
            raise InvalidArgument(
                f"site {site['name']!r} is discrete; only continuous sites can be drawn: sum it out"
            )
        if plate.name in plates_of(site):
            raise InvalidArgument(
                f"latent site {site['name']!r} lies in plate {plate.name!r}, of {plate.size} rows: a "
                "parameter for each row leaves nothing to save; give groups of rows a plate of their own"
            )
    return [site["name"] for site in latent]
