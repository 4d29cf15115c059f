"""Shuffled tables: the same rows, in uniform order, whole or not there at all."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.special import chdtrc

import gumbelrace as gr
from gumbelrace import errors
from gumbelrace.tables import shuffle as module
from gumbelrace.tables.record import record_path
from gumbelrace.tables.shuffle import Plan, shuffle

FALSE_ALARM = 1e-4
ROWS = 5003
MIXED = {
    "row": np.arange(ROWS, dtype=np.int32),
    "flag": np.arange(ROWS) % 3 == 0,
    "real": np.arange(ROWS) * 0.5 + 0.25,
}


@pytest.fixture
def in_buckets(monkeypatch):
    """Cut tables into several buckets and blocks, however small they are."""
    monkeypatch.setattr(module, "planned", lambda rows, memory: Plan(7, 500))


def write(path: Path, columns: dict[str, np.ndarray]) -> Path:
    if path.suffix == ".npy":
        np.save(path, np.rec.fromarrays(list(columns.values()), names=list(columns)))
    elif path.suffix == ".parquet":
        parquet.write_table(pa.table(columns), path, row_group_size=700)
    else:
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    return path


def columns_of(path: Path, names: list[str]) -> dict[str, np.ndarray]:
    parts = [columns for _, columns in gr.open_table(path, names).chunks()]
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


@pytest.mark.usefixtures("in_buckets")
@pytest.mark.parametrize("source", [".npy", ".parquet", ".csv"])
@pytest.mark.parametrize("target", [".npy", ".parquet", ".csv"])
def test_rows_are_those_of_the_source(tmp_path, source, target):
    names, path = list(MIXED), tmp_path / f"shuffled{target}"
    shuffle(gr.open_table(write(tmp_path / f"source{source}", MIXED), names), path, seed=3)
    found = columns_of(path, names)
    order = found["row"]
    assert sorted(order.tolist()) == list(range(ROWS))
    assert (np.diff(order) != 1).mean() > 0.99
    for name, column in MIXED.items():
        np.testing.assert_array_equal(found[name], column[order])
        if ".csv" not in (source, target):
            assert found[name].dtype == column.dtype
    table = gr.open_table(path)
    assert table.shuffled
    assert sorted(os.listdir(tmp_path)) == sorted([f"source{source}", path.name, f"{path.name}.json"])


@pytest.mark.usefixtures("in_buckets")
def test_numbers_of_one_type_make_a_plain_array_with_named_columns(tmp_path):
    columns = {"ant": np.arange(900.0)[::-1], "bee": -np.arange(900.0)}
    shuffle(gr.open_table(write(tmp_path / "a.parquet", columns), ["ant", "bee"]), tmp_path / "b.npy")
    array = np.load(tmp_path / "b.npy", mmap_mode="r")
    assert (array.shape, array.dtype) == ((900, 2), np.float64)
    assert gr.open_table(tmp_path / "b.npy").columns == ("ant", "bee")
    assert gr.best(gr.open_table(tmp_path / "b.npy"), rng=1).name == "ant"


@pytest.mark.usefixtures("in_buckets")
def test_equal_seeds_give_equal_files(tmp_path):
    table = gr.open_table(write(tmp_path / "a.npy", MIXED), list(MIXED))
    for name, seed in (("x.npy", 1), ("y.npy", 1), ("z.npy", 2)):
        shuffle(table, tmp_path / name, seed=seed)
    first, second, other = ((tmp_path / name).read_bytes() for name in ("x.npy", "y.npy", "z.npy"))
    assert first == second != other


@pytest.mark.usefixtures("in_buckets")
def test_a_folder_becomes_one_file(tmp_path):
    (tmp_path / "parts").mkdir()
    for k, rows in enumerate(np.array_split(np.arange(ROWS), 4)):
        write(tmp_path / "parts" / f"{k}.parquet", {name: column[rows] for name, column in MIXED.items()})
    shuffle(gr.open_table(tmp_path / "parts", list(MIXED)), tmp_path / "all.npy")
    assert sorted(columns_of(tmp_path / "all.npy", ["row"])["row"].tolist()) == list(range(ROWS))


CELLS = 20


def unevenness(tmp_path: Path, seeds: range) -> float:
    """Give the p-value of chi-square of where rows come from against where they go, over some shuffles.

    Both margins are fixed: (CELLS - 1)^2 degrees of freedom for each shuffle.
    """
    rows, statistic = 20_000, 0.0
    np.save(tmp_path / "sorted.npy", np.arange(rows)[:, None].repeat(2, axis=1))
    table = gr.open_table(tmp_path / "sorted.npy", ["0", "1"])
    for seed in seeds:
        shuffle(table, tmp_path / "target.npy", seed=seed)
        cells = np.load(tmp_path / "target.npy")[:, 0] * CELLS // rows
        counts = np.bincount(cells * CELLS + np.arange(rows) * CELLS // rows, minlength=CELLS**2)
        statistic += float(((counts - rows / CELLS**2) ** 2).sum() * CELLS**2 / rows)
    return float(chdtrc((CELLS - 1) ** 2 * len(seeds), statistic))


@pytest.mark.usefixtures("in_buckets")
def test_all_orders_are_equally_likely(tmp_path, monkeypatch):
    """Eight shuffles, chi-square over positions, false alarms 1e-4.

    Negative controls: buckets that are written as they were filled, and the first rows in the first bucket.
    """
    assert unevenness(tmp_path, range(8)) > FALSE_ALARM
    with monkeypatch.context() as patch:
        patch.setattr(module, "random_order", lambda count, rng: np.arange(count))
        assert unevenness(tmp_path, range(8)) < FALSE_ALARM
    counts = np.array([14_000, *[1_000] * 6])
    with monkeypatch.context() as patch:
        patch.setattr(module, "scattered", lambda rows, buckets, room, rng: (rows.copy(), counts))
        patch.setattr(module, "planned", lambda rows, memory: Plan(7, 20_000))
        assert unevenness(tmp_path, range(8)) < FALSE_ALARM


def test_buckets_fit_into_memory():
    rows = type("Rows", (), {"size": 50_000_000, "row_bytes": 64})
    plan = module.planned(rows, 1e9)
    assert plan.buckets * 0.5e9 > 50_000_000 * 72
    assert plan.buckets <= 800
    assert plan.block * 64 <= 2**25
    assert plan.block * 64 / plan.buckets >= 2**15  # what is written at once
    assert module.planned(type("Rows", (), {"size": 1000, "row_bytes": 64}), 1e9).buckets == 1
    with pytest.raises(errors.InvalidArgument, match="needs at least"):
        module.planned(type("Rows", (), {"size": 10**12, "row_bytes": 64}), 1e9)
    with pytest.raises(errors.InvalidArgument, match="give at least 16,777,216"):
        module.planned(rows, 1e6)


# Each of these runs is a process that kills itself: at a share of the work, or before or after a file gets
# its name. What it leaves is listed; then the same is run to the end.
KILLED = """
import json, os, signal, sys
from contextlib import nullcontext
import numpy as np, gumbelrace as gr
from gumbelrace.tables import shuffle as module
from gumbelrace.tables.shuffle import Plan, shuffle

source, target = sys.argv[1:]
module.planned = lambda rows, memory: Plan(5, 400)
die = lambda: os.kill(os.getpid(), signal.SIGKILL)

def at_share(share):
    def progress(doing, total):
        return nullcontext(lambda done: die() if done >= share * total else None)
    return {"progress": progress}

def at_name(number, before):
    replace, calls = os.replace, []
    def patched(old, new):
        calls.append(new)
        if len(calls) == number and before: die()
        replace(old, new)
        if len(calls) == number: die()
    module.os.replace = patched
    return {}

def run(options):
    child = os.fork()
    if child == 0:
        shuffle(gr.open_table(source, ["0", "1"]), target, **options())
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

moments = [lambda share=share: at_share(share) for share in np.random.default_rng(1).random(10)]
names = [(number, before) for number in (1, 2) for before in (True, False)]
moments += [lambda name=name: at_name(*name) for name in names]
folder, found = os.path.dirname(source), []
for moment in moments:
    killed, left = run(moment), sorted(os.listdir(folder))
    whole = os.path.exists(target) and len(np.load(target))
    again, after = run(dict), sorted(os.listdir(folder))
    found.append([killed, left, whole, again, after])
    os.unlink(target); os.unlink(target + ".json")
print(json.dumps(found))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_that_is_killed_leaves_nothing_that_looks_whole(tmp_path):
    """At ten random moments, and around those at which files get their names; a second run succeeds."""
    np.save(tmp_path / "source.npy", np.arange(6000).reshape(3000, 2))
    command = [sys.executable, "-c", KILLED, str(tmp_path / "source.npy"), str(tmp_path / "target.npy")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    outcomes = json.loads(ran.stdout)
    assert len(outcomes) == 14
    for number, (killed, left, whole, again, after) in enumerate(outcomes):
        assert (killed, again) == (-9, 0)
        assert after == ["source.npy", "target.npy", "target.npy.json"]
        assert whole == (3000 if "target.npy" in left else False)
        if number < 11:
            assert {"target.npy", "target.npy.json"}.isdisjoint(left)
    assert any("target.npy.new" in left for _, left, *_ in outcomes)


def test_a_file_that_was_there_stays_if_a_run_fails(tmp_path, monkeypatch):
    table = gr.open_table(write(tmp_path / "a.npy", MIXED), list(MIXED))
    shuffle(table, tmp_path / "b.npy", seed=1)
    before = (tmp_path / "b.npy").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "write_all", full)
    with pytest.raises(OSError, match="No space left") as caught:
        shuffle(table, tmp_path / "b.npy", seed=2)
    assert caught.value.filename == str(tmp_path / "b.npy")
    assert (tmp_path / "b.npy").read_bytes() == before
    assert gr.open_table(tmp_path / "b.npy").shuffled
    assert sorted(os.listdir(tmp_path)) == ["a.npy", "b.npy", "b.npy.json"]


def test_a_record_of_another_table_is_refused(tmp_path):
    shuffle(gr.open_table(write(tmp_path / "a.npy", MIXED), list(MIXED)), tmp_path / "b.npy")
    array = np.load(tmp_path / "b.npy")
    np.save(tmp_path / "b.npy", array[np.argsort(array["row"])])
    with pytest.raises(errors.InvalidFile, match=r"b\.npy\.json, the record of .*, is of another table"):
        _ = gr.open_table(tmp_path / "b.npy").shuffled
    assert gr.open_table(tmp_path / "b.npy", shuffled=False).shuffled is False
    record_path(tmp_path / "b.npy").write_text("{")
    with pytest.raises(errors.InvalidFile, match="is damaged"):
        _ = gr.open_table(tmp_path / "b.npy").shuffled
    record_path(tmp_path / "b.npy").write_text('{"of": "somebody else"}')
    assert gr.open_table(tmp_path / "b.npy").shuffled is False


def test_missing_numbers_are_named_or_allowed(tmp_path):
    columns = {name: column.copy() for name, column in MIXED.items()}
    columns["real"][4321] = np.nan
    for ending in (".npy", ".parquet"):
        table = gr.open_table(write(tmp_path / f"a{ending}", columns), list(columns))
        with pytest.raises(errors.InvalidFile, match=r"row 4321 \(counted from 0\), column 'real' is nan"):
            shuffle(table, tmp_path / "b.npy")
        assert not (tmp_path / "b.npy").exists()
    shuffle(table, tmp_path / "b.npy", missing=True)
    assert np.isnan(columns_of(tmp_path / "b.npy", ["real"])["real"]).sum() == 1


def test_what_cannot_be_written_is_said_first(tmp_path, monkeypatch):
    table = gr.open_table(write(tmp_path / "a.npy", MIXED), list(MIXED))
    with pytest.raises(errors.InvalidFile, match="is the table itself"):
        shuffle(table, tmp_path / "a.npy")
    with pytest.raises(errors.InvalidFile, match=r"name a \.csv, \.parquet or \.npy file"):
        shuffle(table, tmp_path / "a.txt")
    monkeypatch.setattr(module.shutil, "disk_usage", lambda folder: type("Usage", (), {"free": 1000}))
    with pytest.raises(errors.InvalidFile, match=r"has 1e-06 GB left, but .* to write b\.npy"):
        shuffle(table, tmp_path / "b.npy")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_two_runs_do_not_write_the_same_file(tmp_path, monkeypatch):
    """A second one would cut short what the first has written, and neither would notice."""
    table, target = gr.open_table(write(tmp_path / "a.npy", MIXED), list(MIXED)), tmp_path / "b.npy"
    order, refused = module.random_order, []

    def meanwhile(count, rng):
        monkeypatch.setattr(module, "random_order", order)
        with pytest.raises(errors.InvalidFile, match=r"another run is writing .*b\.npy") as refusal:
            shuffle(table, target, seed=2)
        refused.append(refusal)
        return order(count, rng)

    monkeypatch.setattr(module, "random_order", meanwhile)
    shuffle(table, target, seed=1)
    assert len(refused) == 1
    assert sorted(columns_of(target, ["row"])["row"]) == list(range(ROWS))
    assert {path.name for path in tmp_path.iterdir()} == {"a.npy", "b.npy", "b.npy.json"}


def test_names_may_have_any_letters(tmp_path):
    """NumPy writes such heads in their third version, and reads ours."""
    columns = {"größe": np.arange(5)[::-1], "重さ": np.arange(5.0) / 2.0, "φ": np.arange(5) > 2}
    table = gr.open_table(write(tmp_path / "a.npy", columns))
    shuffle(table, tmp_path / "b.npy", seed=1)
    found, whole = columns_of(tmp_path / "b.npy", list(columns)), np.load(tmp_path / "b.npy")
    assert whole.dtype.names == tuple(columns)
    for name, column in columns.items():
        np.testing.assert_array_equal(found[name], column[4 - found["größe"]])
        np.testing.assert_array_equal(whole[name], found[name])


@pytest.mark.parametrize("head", [b"", b"\x05", b"\x03\0\0\0{1}", b"\x02\0\0\0{(", b"\xff\xff\xff\xff"])
def test_damaged_heads_of_the_third_version_are_refused(tmp_path, head):
    (tmp_path / "a.npy").write_bytes(np.lib.format.magic(3, 0) + head)
    with pytest.raises(errors.InvalidFile, match=r"is not a \.npy file, or is damaged"):
        gr.open_table(tmp_path / "a.npy")


def test_a_folder_does_not_get_its_own_rows_again(tmp_path):
    (tmp_path / "parts").mkdir()
    table = gr.open_table(write(tmp_path / "parts" / "a.npy", MIXED).parent, list(MIXED))
    with pytest.raises(errors.InvalidFile, match="all rows twice"):
        shuffle(table, tmp_path / "parts" / "b.npy")


@pytest.mark.parametrize("content", ['{"mine": 1}', "no JSON"])
def test_a_file_in_the_place_of_the_record_is_not_lost(tmp_path, content):
    table = gr.open_table(write(tmp_path / "a.npy", MIXED), list(MIXED))
    own = record_path(tmp_path / "b.npy")
    own.write_text(content)
    with pytest.raises(errors.InvalidFile, match="would be lost"):
        shuffle(table, tmp_path / "b.npy")
    assert own.read_text() == content
