"""Tables in files: what is read is what was written, whatever the kind of file; and it can be raced."""

import gzip
import os
import pickle
import platform
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

import gumbelrace as gr
from gumbelrace import errors
from gumbelrace.tables import copies
from gumbelrace.tables.disk import DiskTable, regrouped

ROWS = 10_007
rng = np.random.default_rng(0)
COLUMNS = {
    "flag": rng.random(ROWS) < 0.5,
    "small": rng.integers(-100, 100, ROWS).astype(np.int8),
    "single": rng.normal(size=ROWS).astype(np.float32),
    "large": rng.integers(0, 2**40, ROWS),
    "real": rng.normal(size=ROWS),
}


def write(path: Path, columns: dict[str, np.ndarray]) -> Path:
    if path.suffix == ".parquet":
        parquet.write_table(pa.table(columns), path, row_group_size=3000)
    elif path.suffix == ".npy":
        np.save(path, np.rec.fromarrays(list(columns.values()), names=list(columns)))
    else:
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        text = "\n".join(lines).encode() + b"\n"
        path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def read(table: DiskTable, **options) -> dict[str, np.ndarray]:
    found = list(table.chunks(**options))
    lengths = [len(next(iter(columns.values()))) for _, columns in found]
    assert [first for first, _ in found] == [0, *np.cumsum(lengths)[:-1]]
    return {name: np.concatenate([columns[name] for _, columns in found]) for name in found[0].columns}


@pytest.fixture(params=[".npy", ".parquet", ".csv", ".csv.gz"])
def path(request, tmp_path) -> Path:
    return write(tmp_path / f"table{request.param}", COLUMNS)


def test_columns_are_those_written(path):
    with gr.open_table(path) as table:
        assert (table.columns, table.size) == (tuple(COLUMNS), ROWS)
        found = read(table, rows=1000)
        for name, column in COLUMNS.items():
            np.testing.assert_allclose(found[name], column, rtol=0, atol=0)
            assert found[name].dtype == table.dtypes[name]
            if ".csv" not in path.name:
                assert found[name].dtype == column.dtype
    types = [str(dtype) for dtype in table.dtypes.values()]
    assert types[:2] == (["int8", "int8"] if ".csv" in path.name else ["bool", "int8"])


def test_some_columns_in_any_order_and_chunks_of_any_length(path):
    table = gr.open_table(path, ["real", "Small", "flag"])
    assert table.columns == ("real", "small", "flag")
    found = list(table.chunks(["flag", "real"], rows=4096))
    assert [list(columns) for _, columns in found] == [["flag", "real"]] * 3
    assert [len(columns["flag"]) for _, columns in found] == [4096, 4096, ROWS - 8192]
    np.testing.assert_array_equal(found[1].columns["real"], COLUMNS["real"][4096:8192])


def test_chunks_stay_as_they_are(path):
    (_, first), (_, second), *_ = gr.open_table(path).chunks(["single"], rows=100)
    np.testing.assert_array_equal(first["single"], COLUMNS["single"][:100])
    np.testing.assert_array_equal(second["single"], COLUMNS["single"][100:200])


@given(st.lists(st.integers(0, 9)), st.integers(1, 12))
def test_regrouping_loses_nothing(lengths, rows):
    whole = np.arange(sum(lengths))
    parts = np.split(whole, np.cumsum(lengths))[: len(lengths)]
    found = [part for (part,) in regrouped(iter([part] for part in parts), rows)]
    assert [len(part) for part in found] == [rows] * (len(whole) // rows) + [len(whole) % rows] * (
        len(whole) % rows > 0
    )
    np.testing.assert_array_equal(np.concatenate([np.empty(0, int), *found]), whole)


@pytest.fixture(params=[".npy", ".parquet", ".csv"])
def folder(request, tmp_path) -> Path:
    (tmp_path / "parts" / "more").mkdir(parents=True)
    for k, rows in enumerate(np.array_split(np.arange(ROWS), 3)):
        name = f"more/part-{k}" if k == 2 else f"part-{k}"
        part = {name: column[rows] for name, column in COLUMNS.items()}
        write(tmp_path / "parts" / f"{name}{request.param}", part)
    (tmp_path / "parts" / "_SUCCESS").write_bytes(b"")
    return tmp_path / "parts"


def test_a_folder_is_one_table_and_its_files_are_shards(folder):
    table = gr.open_table(folder)
    assert table.size == ROWS
    found = read(table, rows=700)
    for name, column in COLUMNS.items():
        order = np.array_split(np.arange(ROWS), 3)
        order = np.concatenate([order[2], order[0], order[1]])  # in the order of their names
        np.testing.assert_array_equal(found[name], column[order])
    assert len(table.shards) == 3
    assert sum(shard.size for shard in table.shards) == ROWS
    by_shard = [columns["real"] for shard in table.shards for _, columns in shard.chunks(["real"], 700)]
    whole = [columns["real"] for _, columns in table.chunks(["real"], 700)]
    assert all((a == b).all() for a, b in zip(by_shard, whole, strict=True))


def test_patterns_and_sequences(folder):
    ending = next(folder.glob("part-0.*")).suffix
    pattern = gr.open_table(f"{folder}/part-*{ending}")
    listed = gr.open_table([folder / f"part-{k}{ending}" for k in (1, 0)])
    assert pattern.size == listed.size < ROWS
    first, second = (read(table)["real"] for table in (pattern, listed))
    np.testing.assert_array_equal(second, np.roll(first, listed.shards[0].size))


def test_a_table_goes_to_another_process(path):
    table = pickle.loads(pickle.dumps(gr.open_table(path, ["real", "flag"])))
    np.testing.assert_array_equal(read(table)["real"], COLUMNS["real"])


def test_reads_are_counted(tmp_path):
    plain = tmp_path / "plain.npy"
    np.save(plain, np.zeros((5000, 4), np.float32))
    table = gr.open_table(plain)
    before = table.reads.bytes
    list(table.chunks(rows=100))
    assert table.reads.bytes - before == 5000 * 16
    assert table.reads.stretches == 1 + (before > 0)
    packed = gr.open_table(write(tmp_path / "packed.parquet", COLUMNS))
    list(packed.chunks())
    assert 0.9 * (tmp_path / "packed.parquet").stat().st_size < packed.reads.bytes
    assert packed.reads.bytes <= (tmp_path / "packed.parquet").stat().st_size


SCORES = rng.random((20_000, 3)).round(4) + np.array([0.0, 0.25, 0.125])
NAMES = ["ant", "bee", "cat"]


@pytest.mark.parametrize("ending", [".npy", ".parquet", ".csv"])
@pytest.mark.parametrize("shuffled", [None, True])
def test_every_method_takes_a_table(tmp_path, ending, shuffled):
    """Oracle: the same questions about the array in memory, answered exactly."""
    path = write(tmp_path / f"scores{ending}", dict(zip(NAMES, SCORES.T, strict=True)))
    with gr.open_table(path, shuffled=shuffled, reward_range=(0.0, 1.25)) as table:
        outcome = gr.best(table, rng=1)
        assert outcome.name == "bee"
        assert gr.best(table, method=gr.Exact(), rng=1).arm == gr.best(SCORES, method=gr.Exact()).arm
        assert not gr.audit(table, draws=50, rng=2).broken
        prior = {"ant": 0.0, "bee": -4999.0, "cat": -2500.0}
        drawn = gr.sample(table, prior, size=200, rng=3)
        assert set(drawn.names) <= set(NAMES)


def test_rows_that_are_no_whole_chunk_count(tmp_path):
    """The last row decides."""
    rows = 2**18 + 1
    scores = np.zeros((rows, 2), np.float32)
    scores[-1, 1] = 1.0
    np.save(tmp_path / "scores.npy", scores)
    table = gr.open_table(tmp_path / "scores.npy")
    assert table.population().length > 1
    assert gr.best(table, method=gr.Exact()).arm == 1


def sparse_table(path: Path, rows: int) -> Path:
    """Two columns, of which the second has 4,096 ones in each 2^19 rows; zeros take no room on the disk."""
    ones = np.tile(np.array([0, 1], np.int8), 4096).tobytes()
    with open(path, "wb") as file:
        head = {"descr": "|i1", "fortran_order": False, "shape": (rows, 2)}
        np.lib.format.write_array_header_2_0(file, head)
        start = file.tell()
        file.truncate(start + 2 * rows)
        for first in range(0, rows, 2**19):
            file.seek(start + 2 * first)
            file.write(ones)
    return path


@pytest.mark.parametrize("shuffled", [True, False])
def test_more_rows_than_31_bits_count(tmp_path, shuffled):
    """Oracle: the file as it was written. A stretch of rows in random order begins where the ones do."""
    rows = 2**31 + 2**20
    path = sparse_table(tmp_path / "long.npy", rows)
    table = gr.open_table(path, shuffled=shuffled, reward_range=(0, 1))
    population = table.population()
    assert (table.size, population.size * population.length) == (rows, rows)
    assert gr.best(table, rng=3).name == "1"
    assert set(gr.sample(table, size=3, rng=4, check=False).names) == {"1"}
    assert table.reads.bytes < path.stat().st_size / 50
    first = (2**31 + 2**19) // population.length
    sums = population._sums(np.array([first, first + 8192 // population.length]), np.arange(2))
    assert sums.tolist() == [[0.0, float(population.length)], [0.0, 0.0]]


def test_a_copy_has_the_types_of_the_columns(tmp_path, monkeypatch):
    """Truth values take a byte each in the copy, not eight."""
    flags = {name: rng.random(50_000) < 0.5 for name in NAMES}
    path, written = write(tmp_path / "flags.parquet", flags), []
    append = copies.Copy.append

    def noted(copy, columns):
        append(copy, columns)
        written.append(copy)

    monkeypatch.setattr(copies.Copy, "append", noted)
    gr.open_table(path).population()
    assert written[-1].layout.together == 3
    assert written[-1].layout.rows == 50_000


def test_numbers_of_csv_get_a_wider_type_when_one_needs_it(tmp_path):
    rows = ["1,2,3"] * 60_000 + ["300,2,0.5", "-70000,1,1", "1,,2"]
    (tmp_path / "late.csv").write_text("a,b,c\n" + "\n".join(rows).replace(",,", ",nan,") + "\n")
    table = gr.open_table(tmp_path / "late.csv")
    assert {name: str(dtype) for name, dtype in table.dtypes.items()} == {
        "a": "int32",
        "b": "float64",
        "c": "float64",
    }
    found = read(table)
    assert found["a"][-3:].tolist() == [300, -70000, 1]
    assert (found["a"][:60_000] == 1).all()
    assert np.isnan(found["b"]).tolist() == [False] * 60_002 + [True]
    assert found["c"][-3:].tolist() == [0.5, 1.0, 2.0]


def test_gaps_make_whole_numbers_real_ones(tmp_path):
    whole, real = pa.array([1, None, 3], pa.int8()), pa.array([1.5, None, 2.5], pa.float32())
    gappy = pa.table({"a": whole, "b": real})
    parquet.write_table(gappy, tmp_path / "gappy.parquet")
    found = read(gr.open_table(tmp_path / "gappy.parquet"))
    np.testing.assert_array_equal(found["a"], [1.0, np.nan, 3.0])
    assert (found["a"].dtype, found["b"].dtype) == (np.float64, np.float32)


def test_room_is_checked_before_anything_is_copied(tmp_path, monkeypatch):
    path = write(tmp_path / "table.parquet", COLUMNS)
    monkeypatch.setattr(copies.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1000}))
    monkeypatch.setattr(copies.Copy, "append", lambda copy, columns: pytest.fail("copied"))
    with pytest.raises(errors.InvalidFile, match=r"has no room for the numbers of .*table.parquet"):
        gr.open_table(path).population()


def test_shards_of_csv_have_the_types_that_all_need(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "b.csv").write_text("y,x\n2000,0.5\n")
    table = gr.open_table(tmp_path)
    assert {name: str(dtype) for name, dtype in table.dtypes.items()} == {"x": "float64", "y": "int16"}
    found = [(first, columns["x"].tolist(), columns["x"].dtype) for first, columns in table.chunks(["x"])]
    assert found == [(0, [1.0, 3.0], np.float64), (2, [0.5], np.float64)]
    assert gr.best(table, method=gr.Exact()).name == "y"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda part: {**part, "odd": part["real"]}, "have different columns: 'odd' in one of them only"),
        (lambda part: {**part, "real": part["single"]}, "column 'real' holds float64 in .* but float32 in"),
    ],
)
def test_files_that_disagree_are_refused(tmp_path, change, complaint):
    write(tmp_path / "a.parquet", COLUMNS)
    write(tmp_path / "b.parquet", change(COLUMNS))
    with pytest.raises(errors.InvalidFile, match=complaint):
        gr.open_table(tmp_path)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("nowhere.npy", "does not exist"),
        ("no*where.npy", "no file fits"),
        ([], "there is no file"),
    ],
)
def test_bad_paths(given, complaint):
    with pytest.raises(errors.InvalidArgument, match=complaint):
        gr.open_table(given)


def test_bad_columns(path):
    with pytest.raises(errors.InvalidArgument, match="has no column 'fly'"):
        gr.open_table(path, ["real", "fly"])
    with pytest.raises(errors.InvalidArgument, match="columns is empty"):
        gr.open_table(path, [])
    with pytest.raises(errors.InvalidArgument, match="has no column 'flag'"):
        list(gr.open_table(path, ["real", "small"]).chunks(["flag"]))
    with pytest.raises(errors.InvalidArgument, match="rows is 0"):
        list(gr.open_table(path).chunks(rows=0))


def test_a_file_that_was_written_to_is_not_read_any_more(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((10, 2)))
    table = gr.open_table(tmp_path / "a.npy")
    sent = pickle.loads(pickle.dumps(table))
    assert next(sent.chunks()).first == 0
    packed = pickle.dumps(table)
    os.utime(tmp_path / "a.npy", ns=(0, 1))
    for read in (lambda: next(table.chunks()), lambda: next(sent.chunks()), lambda: pickle.loads(packed)):
        with pytest.raises(errors.InvalidFile, match=r"a\.npy was changed after it was opened"):
            read()
    assert next(gr.open_table(tmp_path / "a.npy").chunks()).first == 0


def test_a_copy_on_another_machine_has_its_own_time(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros((10, 2)))
    packed = pickle.dumps(gr.open_table(tmp_path / "a.npy"))
    os.utime(tmp_path / "a.npy", ns=(0, 1))
    monkeypatch.setattr(platform, "node", lambda: "elsewhere")
    assert pickle.loads(packed).size == 10
    np.save(tmp_path / "a.npy", np.zeros((11, 2)))
    with pytest.raises(errors.InvalidFile, match="was changed"):
        pickle.loads(packed)


def test_a_shape_below_zero_is_refused(tmp_path):
    with open(tmp_path / "a.npy", "wb") as file:
        head = {"descr": "<f8", "fortran_order": False, "shape": (-5, 2)}
        np.lib.format.write_array_header_1_0(file, head)
    with pytest.raises(errors.InvalidFile, match=r"has shape \(-5, 2\)"):
        gr.open_table(tmp_path / "a.npy")


@pytest.mark.parametrize("hidden", ["_temporary/0", ".ipynb_checkpoints"])
def test_hidden_folders_are_left_out(tmp_path, hidden):
    (tmp_path / hidden).mkdir(parents=True)
    for folder in (tmp_path, tmp_path / hidden):
        np.save(folder / "rows.npy", np.ones((10, 2)))
    assert gr.open_table(tmp_path).size == 10


@pytest.mark.skipif(np.dtype(np.longdouble).itemsize == 8, reason="there are no longer numbers")
def test_numbers_longer_than_double_are_refused(tmp_path):
    np.save(tmp_path / "long.npy", np.ones((10, 2), np.longdouble))
    with pytest.raises(errors.InvalidFile, match="float32 or float64"):
        gr.open_table(tmp_path / "long.npy")


@pytest.mark.parametrize("ending", ["npy", "csv"])
@pytest.mark.parametrize("before", [False, True])
def test_a_file_that_has_changed_is_not_raced(tmp_path, ending, before):
    """Neither the first time nor after it has been raced once."""
    path, scores = tmp_path / f"a.{ending}", np.random.default_rng(0).random((3_000, 2))

    def save(rewards):
        if ending == "npy":
            np.save(path, rewards)
        else:
            np.savetxt(path, rewards, delimiter=",", header="a,b", comments="")
        os.utime(path, ns=(1, int(rewards[0, 0] * 1e9)))

    save(scores + np.array([0.0, 1.0]))
    table = gr.open_table(path)
    if before:
        assert gr.best(table, rng=0).arm == 1
    save(scores + np.array([1.0, 0.0]))
    with pytest.raises(errors.InvalidFile, match="was changed after it was opened"):
        gr.best(table, rng=0)
