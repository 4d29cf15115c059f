"""Who is who among mentions of inventors: held-out blocks, fitted to the labels of other blocks.

Splink has the same columns, blocks and labels: m from the pairs of training blocks that share a label, u
from random pairs, clusters as connected components above a match weight that has the highest B³ F1 in the
training blocks. Without a file, mentions are simulated.
"""

import threading
import time
from typing import Any

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gumbelrace.applications.block_search import SAMPLERS, Search, fitted, picked, searched
from gumbelrace.applications.coreference import simulated_mentions
from gumbelrace.models.coreference import Block, bcubed, block_of
from gumbelrace.paper.coreference import held_out, training_blocks
from gumbelrace.tables.mentions import ReadMentions, read_mentions

SIMULATED, SEED, WEIGHTS = 20_000, 0, np.arange(-10.0, 25.0, 0.5)


class Split:
    """Blocks of a fifth of `most` to `most` mentions, for training and held out."""

    def __init__(self, ask: Any) -> None:
        self.read: ReadMentions = (
            read_mentions(ask.data) if ask.data else simulated_mentions(SIMULATED, SEED)
        )
        found, (least, most) = self.read.mentions, (ask.size // 5, ask.size)
        training = [block.rows for block in training_blocks(found)]
        self.training = [rows for rows in training if least <= len(rows) <= most]
        by_block = found.rows_by_block()
        self.held_out = [by_block[b] for b in held_out(found, least, most)]

    def blocks(self, parts: list[Any]) -> list[Block]:
        return [block_of(self.read.mentions, rows) for rows in parts]

    def f1(self, parts: list[Any], clusters: list[Any]) -> float:
        """B³ F1 of clusters, block by block; labelled persons have no mentions without a label."""
        truth = np.concatenate([self.read.mentions.label[rows] for rows in parts])
        ends, apart = 0, []
        for one in clusters:
            apart.append(np.asarray(one) + ends)
            ends += len(one)
        return bcubed(truth, np.concatenate(apart), complete=True).f1


def answer(split: Split, clusters: list[Any], setup: float, seconds: float) -> dict[str, Any]:
    rows = split.held_out
    counts = {
        "blocks": len(rows),
        "mentions": sum(map(len, rows)),
        "training": sum(map(len, split.training)),
    }
    return {"f1": split.f1(rows, clusters), "setup": setup, "seconds": seconds, **counts}


def ours(ask: Any) -> dict[str, Any]:
    split, search = Split(ask), Search()
    began = time.process_time()
    factor, _ = fitted(split.blocks(split.training), np.random.default_rng(SEED), complete=True)
    ready, rng = time.process_time(), np.random.default_rng(SEED)
    clusters = []
    for block in split.blocks(split.held_out):
        kernel = search.kernel(factor.pairs(block), SAMPLERS[picked(len(block))])
        clusters.append(searched(kernel, search, rng, threading.Event()).labels[-1])
    return answer(split, clusters, ready - began, time.process_time() - ready)


# ---- Splink ----


def by_splink(ask: Any) -> dict[str, Any]:
    split = Split(ask)
    began = time.process_time()
    model, predictions = trained(split)
    scores = [split.f1(split.training, components(split.training, predictions, w)) for w in WEIGHTS]
    best = float(WEIGHTS[int(np.argmax(scores))])
    ready = time.process_time()
    found = linker(split, split.held_out, model).inference.predict(threshold_match_weight=best)
    clusters = components(split.held_out, found.as_pyarrow_table(), best)
    return answer(split, clusters, ready - began, time.process_time() - ready) | {"weight": best}


def trained(split: Split) -> tuple[dict[str, Any], Any]:
    """Give the model, and what it says of pairs in the blocks that it was fitted to."""
    fitting = linker(split, split.training, settings())
    fitting.training.estimate_u_using_random_sampling(max_pairs=1e7, seed=SEED)
    fitting.training.estimate_m_from_label_column("person")
    predictions = fitting.inference.predict(threshold_match_weight=float(WEIGHTS[0]))
    return fitting.misc.save_model_to_json(), predictions.as_pyarrow_table()


def settings() -> Any:
    import splink.comparison_level_library as levels
    import splink.comparison_library as compare
    from splink import SettingsCreator, block_on

    years = [levels.AbsoluteDifferenceLevel("year", apart) for apart in (2, 5, 15)]
    return SettingsCreator(
        link_type="dedupe_only",
        blocking_rules_to_generate_predictions=[block_on("block")],
        comparisons=[
            compare.JaroWinklerAtThresholds("author", [0.97, 0.92, 0.85]),
            compare.ArrayIntersectAtSizes("coauthors", [3, 2, 1]),
            compare.ArrayIntersectAtSizes("title", [4, 2, 1]),
            compare.ArrayIntersectAtSizes("cpc", [3, 2, 1]),
            compare.JaroWinklerAtThresholds("venue", [0.95, 0.85]),
            compare.ExactMatch("city"),
            compare.ExactMatch("country"),
            compare.CustomComparison([levels.NullLevel("year"), *years, levels.ElseLevel()], "year"),
        ],
    )


def linker(split: Split, parts: list[Any], model: Any) -> Any:
    import duckdb
    import pyarrow as pa
    from splink import DuckDBAPI, Linker

    database = DuckDBAPI(connection=duckdb.connect(config={"threads": 1}))
    rows = np.concatenate(parts)
    texts = {name: [values[r] for r in rows] for name, values in split.read.texts.items()}
    empty = [""] * len(rows)
    columns: dict[str, Any] = {
        name: texts.get(name, empty) for name in ("author", "venue", "city", "country")
    }
    columns = {name: [text.lower() or None for text in values] for name, values in columns.items()}
    for name, between in (("coauthors", ";"), ("cpc", ";"), ("title", " ")):
        columns[name] = [text.lower().split(between) if text else None for text in texts.get(name, empty)]
    columns["year"] = [int(text) if text.isdigit() else None for text in texts.get("year", empty)]
    labels = split.read.mentions.label[rows]
    columns["person"] = [str(label) if label >= 0 else None for label in labels]
    columns["block"] = split.read.mentions.block[rows]
    columns["unique_id"] = np.arange(len(rows))
    return Linker(database.register(pa.table(columns)), model, log_level=None)


def components(parts: list[Any], predictions: Any, weight: float) -> list[Any]:
    """Give the connected components of each block: those of pairs of such a match weight or more."""
    left, right, weights = (
        predictions[name].to_numpy() for name in ("unique_id_l", "unique_id_r", "match_weight")
    )
    kept, size = weights >= weight, sum(map(len, parts))
    links = coo_array((np.ones(kept.sum()), (left[kept], right[kept])), (size, size))
    found = connected_components(links, directed=False)[1]
    split = np.split(found, np.cumsum([len(rows) for rows in parts])[:-1])
    return [np.unique(labels, return_inverse=True)[1] for labels in split]


WAYS = {"ours": ours, "Splink": by_splink}
