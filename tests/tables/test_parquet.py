"""Parquet files: types, and what is no column."""

import decimal

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from gumbelrace.tables.population import Scores, open_scores


def all_of(scores: Scores) -> np.ndarray:
    rows, arms = np.arange(scores.rows), np.arange(len(scores.names))
    return scores.file.runs(rows, 1, scores.columns[arms]).astype(float)


def test_types_of_parquet(tmp_path):
    columns = {
        "b": pa.array([True, False]),
        "i": pa.array([1, 2**52]),
        "h": pa.array(np.array([1.5, 2.5], np.float16)),
        "d": pa.array([decimal.Decimal("1.25"), decimal.Decimal("-2.50")]),
        "t": pa.array(["no", "numbers"]),
    }
    parquet.write_table(pa.table(columns), tmp_path / "types.parquet")
    with open_scores(tmp_path / "types.parquet", ["b", "i", "h", "d"]) as scores:
        np.testing.assert_array_equal(all_of(scores), [[1, 1, 1.5, 1.25], [0, 2**52, 2.5, -2.5]])
        np.testing.assert_array_equal(scores.bounds, [[0, 1, 1.5, -2.5], [1, 2**52, 2.5, 1.25]])


def test_an_index_of_pandas_is_no_column(tmp_path):
    table = pa.table({"ant": [1.0], "bee": [2.0], "id": [9]})
    table = table.replace_schema_metadata({"pandas": '{"index_columns": ["id"], "columns": []}'})
    parquet.write_table(table, tmp_path / "table.parquet")
    with open_scores(tmp_path / "table.parquet") as scores:
        assert scores.names == ("ant", "bee")
