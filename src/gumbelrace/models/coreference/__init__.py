"""Author coreference: mentions of authors, the pairwise factor, and how to judge clusters."""

from gumbelrace.models.coreference.factor import FEATURES, Factor, Shaping
from gumbelrace.models.coreference.fit import (
    BCubed,
    bcubed,
    fit,
    in_training,
    linkage,
    rank_shapings,
    score,
)
from gumbelrace.models.coreference.mentions import COLUMNS, Block, Mentions, block_of, blocks, mentions
from gumbelrace.models.coreference.names import Name, parse_name
from gumbelrace.models.coreference.simulate import simulate

__all__ = [
    "COLUMNS",
    "FEATURES",
    "BCubed",
    "Block",
    "Factor",
    "Mentions",
    "Name",
    "Shaping",
    "bcubed",
    "block_of",
    "blocks",
    "fit",
    "in_training",
    "linkage",
    "mentions",
    "parse_name",
    "rank_shapings",
    "score",
    "simulate",
]
