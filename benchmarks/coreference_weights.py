"""How the default weights of author coreference were made, and what they reach.

    python benchmarks/coreference_weights.py --authors FILE --patents FILE [--out default_weights.json]

`authors` is fully labelled; in `patents` some persons are labelled, with all of their mentions. Weights are
fitted to pairs of the training blocks of both (half of the blocks, by a hash of the name), each file with
the same weight; the shaping is chosen as `gumbelrace coreference fit` does, by the mean of the two B³ F1 on
training blocks. Then each file's test blocks are clustered: with these weights, with weights and shaping
from its own training blocks only, and by linkage on its own factor.

Measured (two shared cores, 14 minutes, 2026-11-16): B³ precision, recall, F1.

                                 authors, 44 test blocks    patents, 57 test blocks of 100 to 3,000
    default weights              0.893 0.783 0.834          0.936 0.821 0.875
    weights of its own           0.893 0.845 0.869          0.862 0.969 0.912
    best single linkage          0.909 0.905 0.907          0.902 0.828 0.863
    best average linkage         0.887 0.879 0.883          0.867 0.962 0.912
    whole blocks                 0.548 1.000 0.708          0.465 1.000 0.635
    ns a factor                  160                        155

The thresholds of linkage are the best of three on the test blocks themselves. In `patents`, unlabelled
mentions count as other persons (`bcubed` with complete=True): left out, whole blocks would score 1.000.
"""

import argparse
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np

from gumbelrace.applications.block_search import (
    FEW,
    LARGE,
    QUICK,
    SMALL,
    THOROUGH,
    Search,
    clusters,
    fitted,
)
from gumbelrace.models.coreference import (
    Block,
    Factor,
    Shaping,
    bcubed,
    blocks,
    in_training,
    linkage,
    rank_shapings,
    score,
)
from gumbelrace.models.coreference.fit import MOST_PAIRS, SHAPINGS, Sample, regression, sample_pairs
from gumbelrace.tables.mentions import read_mentions


@dataclass(frozen=True)
class Data:
    """A file's labelled blocks."""

    name: str
    training: list[Block]
    test: list[Block]
    complete: bool


def read(path: Path, complete: bool, least: int, most: int | None) -> Data:
    started = process_time()
    found = read_mentions(path).mentions
    print(f"{path.name}: {len(found)} mentions parsed in {process_time() - started:.1f} s")
    parts = list(zip(found.block_names, blocks(found), strict=True))
    training = [block for name, block in parts if in_training(name)]
    within = [b for n, b in parts if not in_training(n) and least <= len(b) <= (most or len(b))]
    return Data(path.name, training, within, complete)


def pooled(data: list[Data], rng) -> Factor:
    samples = [sample_pairs(one.training, rng, one.complete, MOST_PAIRS) for one in data]
    even = [sample._replace(weight=sample.weight / sample.weight.sum()) for sample in samples]
    return regression(Sample(*(np.concatenate(column) for column in zip(*even, strict=True))))


def ranked(factor: Factor, data: list[Data], shapings: list[Shaping], search: Search, most: int):
    """Give each shaping and its mean F1 on the files' training blocks, the best first."""
    reached = dict.fromkeys(shapings, 0.0)
    for one in data:
        small = [block for block in one.training if len(block) <= most]
        found = rank_shapings(factor, small, partial(clusters, search), one.complete, shapings)
        for tried, result in found:
            reached[tried.shaping] += result.f1 / len(data)
    return sorted(reached.items(), key=lambda item: -item[1])


def shaped(factor: Factor, data: list[Data]) -> Factor:
    """Choose the shaping as `fitted` does, by the mean F1 of the files."""
    few = [shaping for shaping, _ in ranked(factor, data, list(SHAPINGS), QUICK, SMALL)[:FEW]]
    shaping, reached = ranked(factor, data, few, THOROUGH, LARGE)[0]
    print(f"default weights, {shaping}: training F1 {reached:.4f}")
    return Factor(factor.weights, shaping)


def report_linkage(factor: Factor, one: Data) -> None:
    for method, threshold in product(("single", "average"), (0.0, 1.0, 1.9)):
        found = score(factor, one.test, lambda p, m=method, t=threshold: linkage(p, t, m), one.complete)
        print(f"  {method} linkage above {threshold}: {found}")


def report_cost(factor: Factor, one: Data) -> None:
    block = max(one.test, key=len)
    pairs, indices = factor.pairs(block), np.random.default_rng(0).integers(len(block), size=(2, 10**6))
    i, j = indices[:, indices[0] != indices[1]]
    pairs.values(i[:1], j[:1])
    started = process_time()
    pairs.values(i, j)
    print(f"  {1e9 * (process_time() - started) / len(i):.0f} ns a factor, n = {len(block)}, random pairs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name in ("--authors", "--patents", "--out"):
        parser.add_argument(name, type=Path, required=name != "--out")
    options = parser.parse_args()
    data = [read(options.authors, False, 1, None), read(options.patents, True, 100, 3000)]
    rng = np.random.default_rng(0)
    factor = shaped(pooled(data, rng), data)
    if options.out:
        factor.save(options.out)
    for one in data:
        print(f"{one.name}: {len(one.test)} test blocks; B³ precision, recall, F1")
        own, training = fitted(one.training, rng, one.complete)
        print(f"  its own weights, {own.shaping}: training F1 {training.f1:.4f}")
        for title, used in (("default weights", factor), ("its own weights", own)):
            print(f"  {title}: {score(used, one.test, partial(clusters, THOROUGH), one.complete)}")
        report_linkage(own, one)
        whole = [np.full(len(block), k) for k, block in enumerate(one.test)]
        truth = np.concatenate([block.label for block in one.test])
        print(f"  whole blocks: {bcubed(truth, np.concatenate(whole), one.complete)}")
        report_cost(own, one)


if __name__ == "__main__":
    main()
