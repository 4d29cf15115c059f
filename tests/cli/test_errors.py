"""Everything that can be wrong with a file or an option is one line that says what to do."""

import gzip
import io
import os
import struct
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from gumbelrace.tables import opened, source
from gumbelrace.tables.rowfile import npy_layout

GOOD = "ant,bee\n1,2\n3,4\n5,6\n"


def npy(array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def parquet(**columns) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def npz(**arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def pickled() -> bytes:
    """The head of a .npy file of Python objects; what follows it is never opened."""
    head = b"{'descr': '|O', 'fortran_order': False, 'shape': (2, 2), }".ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + b"cos\nsystem\n."


TABLE = np.arange(12.0).reshape(4, 3)
WITH_NAN, WITH_INF = TABLE.copy(), TABLE.copy()
WITH_NAN[2, 1], WITH_INF[3, 0] = np.nan, np.inf

FILES = [
    ("empty.npy", b"", "empty.npy is empty"),
    ("empty.csv", b"", "empty.csv is empty"),
    ("empty.parquet", b"", "empty.parquet is empty"),
    ("table.xlsx", b"x", "convert it to .npy, .npz, .csv, .csv.gz, .tsv, .tsv.gz or .parquet"),
    ("table", b"x", "convert it to"),
    ("text.npy", b"ant,bee\n1,2\n", "is not a .npy file, or is damaged"),
    ("future.npy", b"\x93NUMPY\x09\x00" + npy(TABLE)[8:], "is not a .npy file, or is damaged"),
    ("head.npy", npy(TABLE)[:50], "is not a .npy file, or is damaged"),
    ("cut.npy", npy(TABLE)[:-8], "216 bytes of 224: its end is missing"),
    ("pickled.npy", pickled(), "Python objects"),
    ("nested.npy", npy(np.zeros(3, [("a", float, 2), ("b", float)])), "convert it to bool, int"),
    ("complex.npy", npy(TABLE * 1j), "holds complex128; convert it to bool, int"),
    ("words.npy", npy(TABLE.astype(str)), "convert it to bool, int"),
    ("dates.npy", npy(TABLE.astype("datetime64[s]")), "convert it to bool, int"),
    ("line.npy", npy(TABLE[0]), "shape (3,); it must be (rows, columns)"),
    ("cube.npy", npy(TABLE[None]), "shape (1, 4, 3); it must be (rows, columns)"),
    ("norows.npy", npy(TABLE[:0]), "has no rows"),
    ("one.npy", npy(TABLE[:, :1]), "two or more columns"),
    ("none.npy", npy(TABLE[:, :0]), "two or more columns"),
    ("nan.npy", npy(WITH_NAN), "row 2 (counted from 0), column 1 is nan"),
    ("inf.npy", npy(WITH_INF), "row 3 (counted from 0), column 0 is inf"),
    ("half.npy", npy(WITH_INF.astype(np.float16)), "row 3 (counted from 0), column 0 is inf"),
    ("allout.npy", npy(np.full((3, 2), -np.inf)), "every column holds an infinity"),
    ("one.csv", b"ant\n1\n2\n", "one column, 'ant'"),
    ("colons.csv", b"ant:bee\n1:2\n", "one column, 'ant:bee'; give two or more, or say by --sep"),
    ("unclear.csv", b"ant;bee\n1,234;2\n", "but '1,234'; say by --decimal what stands before decimals"),
    ("mixed.csv", b"ant;bee\n" + b"1,5;2\n" * 60 + b"1;1.234\n", "row 60 (counted from 0) of column 'bee'"),
    ("nohead.csv", b"0.5,0.25\n0.75,1\n", "its first line must have the names"),
    ("blank.csv", b"\nant,bee\n1,2\n", "begins with an empty line"),
    ("index.csv", b"index,ant\n0,1\n1,1\n2,1\n3,1\n4,1\n", "with 'ant' alone there is nothing"),
    ("two.npz", npz(a=TABLE, b=TABLE), "two.npz holds 2 arrays; save the one that is meant"),
    ("cut.npz", npz(a=TABLE)[:-30], "is not a .npz file, or is damaged"),
    ("twice.csv", b"ant,bee,ant\n1,2,3\n", "column 'ant' is there twice"),
    ("norows.csv", b"ant,bee\n", "has no rows"),
    ("norows2.csv", b"ant,bee", "has no rows"),
    ("word.csv", GOOD.encode() + b"7,x\n", "no number in row 3 (counted from 0) of column 'bee' but 'x'"),
    ("gap.csv", GOOD.encode() + b"7,\n", "no number in row 3 (counted from 0) of column 'bee' but ''"),
    ("words.csv", b"id,ant,bee,kind\nu1,1,2,k\n", "column 'id' (nor in 'kind') but 'u1'"),
    ("words2.csv", b"id,ant,bee\nu1,1,2\n", "choose columns of numbers by --columns"),
    ("digits.csv", GOOD.encode() + b"7,1_0\n", "row 3 (counted from 0) of column 'bee' but '1_0'"),
    ("nan.csv", GOOD.encode() + b"7,nan\n", "row 3 (counted from 0), column 'bee' is nan"),
    ("inf.csv", GOOD.encode() + b"7,1e999\n", "row 3 (counted from 0), column 'bee' is inf"),
    ("short.csv", GOOD.encode() + b"7\n", "row 3 (counted from 0) has 1 entries, but there are 2"),
    ("long.csv", GOOD.encode() + b"\n7,8,9\n", "row 3 (counted from 0) has 3 entries, but there are 2"),
    ("latin.csv", GOOD.encode() + b"7,\xe9\n", "is not in UTF-8"),
    ("latin2.csv", b"\xe9,bee\n1,2\n", "is not in UTF-8"),
    ("notzip.csv.gz", GOOD.encode(), "is not a gzip file, or is damaged"),
    ("cut.csv.gz", gzip.compress(GOOD.encode() * 9)[:-9], "is not a gzip file, or is damaged"),
    ("text.parquet", GOOD.encode(), "is not a .parquet file, or is damaged"),
    ("cut.parquet", parquet(ant=[1.0], bee=[2.0])[:-20], "is not a .parquet file, or is damaged"),
    ("one.parquet", parquet(ant=[1.0]), "two or more columns"),
    ("norows.parquet", parquet(ant=np.zeros(0), bee=np.zeros(0)), "has no rows"),
    ("word.parquet", parquet(id=["u"], ant=[1], kind=["k"]), "column 'id' (nor in 'kind') but 'u'"),
    ("dates.parquet", parquet(ant=[date(2024, 1, 2)], bee=[1]), "no numbers in 'ant'; choose"),
    ("null.parquet", parquet(ant=[1, 2], bee=[1, None]), "row 1 (counted from 0), column 'bee' is nan"),
    ("inf.parquet", parquet(ant=[1.0], bee=[np.inf]), "row 0 (counted from 0), column 'bee' is inf"),
]


@pytest.mark.parametrize(("name", "content", "complaint"), FILES, ids=[name for name, *_ in FILES])
@pytest.mark.parametrize("command", ["best", "sample"])
def test_bad_files(fails, tmp_path, command, name, content, complaint):
    (tmp_path / name).write_bytes(content)
    said = fails(command, name)
    if command == "sample" and name == "allout.npy":
        complaint = "every column holds a -inf"
    assert complaint in said
    assert said.startswith(name)
    assert os.listdir(tmp_path) == [name]


OPTIONS = [
    ("nowhere.npy", "nowhere.npy does not exist"),
    (".", ". has tables of different kinds (good.npy, small.csv)"),
    ("folder.csv", "folder.csv is a folder without tables"),
    ("no*.csv", "no file fits no*.csv"),
    ("*.csv --columns ant,fly", "has no column 'fly'"),
    ("good.csv --delta 0", "delta is 0.0; it must lie strictly between 0 and 1"),
    ("good.csv --delta 1", "delta is 1.0"),
    ("good.csv --delta nan", "delta is nan"),
    ("good.csv --delta few", "'--delta'"),
    ("good.csv --seed -1", "'--seed'"),
    ("good.csv --seed 1.5", "'--seed'"),
    ("good.csv --reward-range 2 1", "--reward-range is 2 to 1; give two numbers, the lower one first"),
    ("good.csv --reward-range 0 inf", "--reward-range is 0 to inf"),
    ("good.csv --reward-range 0 nan", "--reward-range is 0 to nan"),
    ("good.csv --reward-range 0", "'--reward-range'"),
    (
        "good.csv --reward-range 0 5.5",
        "row 2 (counted from 0), column 'bee' is 6.0, outside the range 0 to 5.5",
    ),
    ("good.npy --reward-range 0 7.5", "outside the range 0 to 7.5; widen --reward-range"),
    ("good.csv --columns ant,fly", "has no column 'fly'; it has 'ant', 'bee'"),
    ("good.npy --columns 0,3", "has no column '3'; it has '0', '1', '2'"),
    ("good.csv --columns ant,ant", "column 'ant' is there twice"),
    ("good.csv --columns ant", "two or more columns"),
    ("good.csv --colour", "--colour"),
    ("good.csv good.csv", "good.csv"),
    ("", "FILE"),
]


@pytest.mark.parametrize(("words", "complaint"), OPTIONS, ids=[words for words, _ in OPTIONS])
@pytest.mark.parametrize("command", ["best", "sample"])
def test_bad_options(fails, tmp_path, command, words, complaint):
    prepare(tmp_path)
    assert complaint.lower() in fails(command, *words.split()).lower()


SAMPLE = [
    ("--draws 0", "'--draws'"),
    ("--out nowhere/draws.csv", "there is no folder nowhere"),
    ("--out draws.txt", "name a .csv, .parquet or .npy file"),
    ("--out draws", "name a .csv, .parquet or .npy file"),
    ("--out folder.csv", "folder.csv is a folder"),
    ("--out good.npy", "good.npy is the table itself"),
    ("--log-prior good.npy", "has 4 rows; a log prior has one"),
    ("--log-prior nowhere.npy", "nowhere.npy does not exist"),
    ("--log-prior small.csv", "has no column '0'; it has 'ant', 'bee'"),
]


@pytest.mark.parametrize(("words", "complaint"), SAMPLE, ids=[words for words, _ in SAMPLE])
def test_bad_options_of_sample(fails, tmp_path, words, complaint):
    prepare(tmp_path)
    before = sorted(os.listdir(tmp_path))
    assert complaint in fails("sample", "good.npy", *words.split())
    assert sorted(os.listdir(tmp_path)) == before


def prepare(folder: Path) -> None:
    (folder / "folder.csv").mkdir()
    (folder / "good.csv").write_text(GOOD)
    (folder / "small.csv").write_text("ant,bee\n1,2\n")
    (folder / "good.npy").write_bytes(npy(TABLE))


def test_unknown_commands(fails):
    assert "'bets'" in fails("bets")


def test_a_file_that_shrinks(fails, tmp_path, monkeypatch):
    (tmp_path / "good.npy").write_bytes(npy(np.zeros((1000, 3))))

    def cut_after(source):
        found = npy_layout(source)
        os.truncate(source.name, 200)
        return found

    monkeypatch.setattr(opened, "npy_layout", cut_after)
    assert "good.npy became shorter while it was read" in fails("best", "good.npy")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_of_others(fails, tmp_path):
    (tmp_path / "good.npy").write_bytes(npy(TABLE))
    (tmp_path / "good.npy").chmod(0)
    assert "good.npy: Permission denied" in fails("best", "good.npy")


def test_no_room_for_the_temporary_file(fails, tmp_path, monkeypatch):
    class Full(io.BytesIO):
        def write(self, _):
            raise OSError(28, "No space left on device")

    np.savez(tmp_path / "good.npz", TABLE)
    monkeypatch.setattr(source.tempfile, "TemporaryFile", Full)
    assert "has no room for the numbers of good.npz; set TMPDIR" in fails("best", "good.npz")


def test_missing_pyarrow_is_named(fails, tmp_path, without):
    without("pyarrow")
    (tmp_path / "table.parquet").write_bytes(b"PAR1")
    prepare(tmp_path)
    for words in ("best table.parquet", "best good.csv", "sample good.npy --out draws.parquet"):
        assert 'pip install "gumbelrace[cli]"' in fails(*words.split())


def test_integers_that_would_be_rounded(fails, run, tmp_path):
    large = np.full((40, 2), 2**62)
    large[:, 1] += 1
    np.save(tmp_path / "large.npy", large)
    rows = "".join(f"{a},{b}\n" for a, b in large.tolist())
    (tmp_path / "large.csv").write_text("a,b\n" + rows)
    (tmp_path / "spaced.csv").write_text("a,b\n" + rows.replace(",", ", "))
    names = ["large.npy", "large.csv", "spaced.csv"]
    (tmp_path / "large.parquet").write_bytes(parquet(a=large[:, 0], b=large[:, 1]))
    for name in [*names, "large.parquet"]:
        assert "would be rounded" in fails("best", name, "--exact")
    (tmp_path / "rough.csv").write_text("a,b\n1e140,2e140\n")
    assert run("best", "rough.csv", "--exact").exit_code == 0
