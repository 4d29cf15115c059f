"""Author coreference: mentions of authors, the pairwise factor, and how to judge clusters."""

from gumbelrace.models.coreference.bcubed import BCubed, bcubed
from gumbelrace.models.coreference.block import Block, block_of, blocks
from gumbelrace.models.coreference.factor import Factor, Shaping
from gumbelrace.models.coreference.features import FEATURES
from gumbelrace.models.coreference.fit import fit, in_training, rank_shapings, score
from gumbelrace.models.coreference.linkage import linkage
from gumbelrace.models.coreference.mentions import COLUMNS, Mentions, mentions
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
