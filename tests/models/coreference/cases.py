"""A block with every kind of feature, and the features of a pair by plain Python."""

import numpy as np

from gumbelrace.models.coreference import FEATURES, block_of, mentions
from gumbelrace.models.coreference.mentions import FIELDS
from gumbelrace.models.coreference.names import FAMILY, GIVEN, MIDDLE, SUFFIX, agreement

COLUMNS = {
    "author": ["Wei K. Li", "W. Li", "Wen Li", "Wei Li, Jr.", "Weii Lie", "Wei M. Li"],
    "coauthors": ["Bo Ma;Al Wu", "Bo Ma;Al Wu;C Xu", "C Xu", "", "Bo Ma", "D Yu"],
    "title": ["fast races", "fast slow walks", "slow races", "fast races", "", "trees"],
    "venue": ["ICML", "ICML", "Journal of Walks", "", "Journal of Walks", "ICML"],
    "year": ["1999", "2001", "", "1950", "2001", "1999"],
    "affiliation": ["Cambridge", "Cambridge", "", "", "", "Oxford"],
    "city": ["", "", "Bonn", "", "Bonn", ""],
    "country": ["UK", "UK", "DE", "", "UK", "DE"],
    "cpc": ["G06F;H01L", "G06F", "", "H01L", "H01L;G06F", ""],
    "block": ["li"] * 6,
    "label": ["a", "a", "b", "c", "b", "a"],
}


def block():
    found = mentions(COLUMNS)
    return found, block_of(found, np.arange(len(found)))


def features_by_hand(found, i, j):
    """Features of mentions i and j, in the order of FEATURES, without a Block."""
    values = dict.fromkeys(FEATURES, 0.0) | {"bias": 1.0}
    code = int(agreement([found.names[found.name[i]], found.names[found.name[j]]])[0, 1])
    kinds = {"given": GIVEN, "middle": MIDDLE, "family": FAMILY, "suffix": SUFFIX}
    for part, classes in kinds.items():
        code, place = divmod(code, len(classes))
        if place:
            values[f"{part}_{classes[place]}"] = 1.0
    for field, sets in zip(FIELDS, found.sets, strict=True):
        one, other = (set(sets.tokens[sets.starts[k] : sets.starts[k + 1]].tolist()) for k in (i, j))
        weight = sets.weights**2
        lengths = [sum(weight[t] for t in tokens) ** 0.5 for tokens in (one, other)]
        if 0.0 in lengths:
            values[f"{field}_unknown"] = 1.0
            continue
        common = sum(weight[t] for t in one & other)
        values[f"{field}_shared"] = common / (1.0 + common)
        values[f"{field}_cosine"] = common / (lengths[0] * lengths[1])
    if not any(values[f"given_{kind}"] for kind in GIVEN[1:]):
        values["name_rarity"] = (found.rarity[i] + found.rarity[j]) / 2
    apart = abs(found.year[i] - found.year[j])
    values["year_unknown" if np.isnan(apart) else "year_apart"] = (
        1.0 if np.isnan(apart) else min(apart / 10, 2)
    )
    if min(found.country[i], found.country[j]) < 0:
        values["country_unknown"] = 1.0
    values["country_different"] = float(
        not values["country_unknown"] and found.country[i] != found.country[j]
    )
    return np.array([values[name] for name in FEATURES])
