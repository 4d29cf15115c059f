"""Reading prices: what comes out of files, and what is said of files that hold none."""

import gzip

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from gumbelrace.errors import InvalidArgument, MissingPackage
from gumbelrace.tables.prices import read_prices

ROWS = "2024-01-02 09:35:00,10.5,a\n2024-01-02T09:40,,b\n,11.0,b\n"
TIMES = np.array(["2024-01-02T09:35", "2024-01-02T09:40", "NaT"], "datetime64[us]")


def written(folder, text, name="prices.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def same(found, times=TIMES, prices=(10.5, np.nan, 11.0)):
    np.testing.assert_array_equal(found.times, times)
    np.testing.assert_array_equal(found.prices, prices)


def test_csv_with_and_without_segments(tmp_path):
    path = written(tmp_path, "datetime,close,series\n" + ROWS)
    same(read_prices(path))
    assert read_prices(path).segments is None
    assert read_prices(str(path), segment="series").segments.tolist() == ["a", "b", "b"]


def test_gzip_and_a_byte_order_mark_and_other_columns(tmp_path):
    path = tmp_path / "prices.csv.gz"
    with gzip.open(path, "wt", encoding="utf-8-sig") as file:
        file.write(" when ,paid,series\n\n" + ROWS)
    same(read_prices(path, price="paid", time="when"))


def test_zones_are_dropped_and_the_clock_stays(tmp_path):
    path = written(
        tmp_path, "datetime,close\n2024-01-02 23:35:00+08:00,1\n2024-01-03T00:05:00Z,null\n2024-01-04,3\n"
    )
    times = np.array(["2024-01-02T23:35", "2024-01-03T00:05", "2024-01-04"], "datetime64[us]")
    same(read_prices(path), times, [1.0, np.nan, 3.0])


def test_times_that_count(tmp_path):
    path = written(tmp_path, "datetime,close\n1704188100,1\n,2\n")
    times = np.array(["2024-01-02T09:35", "NaT"], "datetime64[s]")
    same(read_prices(path, unit="s"), times, [1.0, 2.0])


def test_parquet(tmp_path):
    stamps = pyarrow.array([1704188100, 1704188400, None], pyarrow.timestamp("s", tz="Asia/Shanghai"))
    counts = pyarrow.array([28403135, 28403140, None], pyarrow.int32())
    columns = {"datetime": stamps, "minute": counts, "close": pyarrow.array([10.5, None, 11.0])}
    parquet.write_table(pyarrow.table(columns), tmp_path / "prices.parquet")
    local = TIMES + np.timedelta64(8, "h")
    same(read_prices(tmp_path / "prices.parquet"), local)
    same(read_prices(tmp_path / "prices.parquet", time="minute", unit="m"))


@pytest.mark.parametrize("name", ["prices.csv", "prices.parquet"])
def test_a_missing_package_is_named(tmp_path, without, name):
    without("pyarrow")
    with pytest.raises(MissingPackage, match=r"gumbelrace\[cli\]"):
        read_prices(written(tmp_path, "datetime,close\n" + ROWS, name))


@pytest.mark.parametrize(
    ("text", "options", "complaint"),
    [
        ("datetime,close\n", {}, "no rows"),
        ("", {}, "is empty; write it again"),
        ("date,close\n2024-01-02,1\n", {}, "no column 'datetime'; name one of 'date', 'close' by --time"),
        (
            "datetime,close\n2024-01-02,1\n",
            {"price": "open"},
            "no column 'open'; name one of .* by --price",
        ),
        ("datetime,close\n2024-01-02,1\n", {"segment": "series"}, "no column 'series'"),
        (
            "datetime,close\n2024-01-02,1\n2024-01-03\n",
            {},
            "row 1 .* has 1 entries, but there are 2",
        ),
        ("datetime,close\n2024-01-02,one\n", {}, "'close' holds what is no number.*one"),
        ("datetime,close\n2/1/2024,1\n", {}, "'datetime' holds what is no time.*2/1/2024"),
        ("datetime,close\n20240102,1\n", {}, "no seconds or milliseconds since 1970, such as 20240102"),
        ("datetime,close\n1704188100,1\n1704188100000,2\n", {}, "no seconds or milliseconds"),
        ("datetime,close\nnoon,1\n", {"unit": "s"}, "'datetime' holds what is no number"),
        ("datetime,close\n2024-01-02,1\n", {"unit": "week"}, "unit is 'week'"),
    ],
)
def test_bad_files_are_explained(tmp_path, text, options, complaint):
    with pytest.raises(InvalidArgument, match=complaint):
        read_prices(written(tmp_path, text), **options)


@pytest.mark.parametrize("name", ["prices.csv", "prices.csv.gz", "prices.parquet"])
def test_what_is_no_such_file_is_explained(tmp_path, name):
    with pytest.raises(InvalidArgument, match="does not exist; give a"):
        read_prices(tmp_path / name)
    (tmp_path / name).write_bytes(b"\x80\xff\x00nonsense")
    with pytest.raises(InvalidArgument, match="is not"):
        read_prices(tmp_path / name)


@pytest.mark.parametrize("factor", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("kind", ["csv", "csv of np.savetxt", "parquet"])
def test_numbers_since_1970_are_recognised(tmp_path, factor, kind):
    counts = [1704188100 * factor, 1704188400 * factor]
    if "csv" in kind:
        form = "d" if kind == "csv" else ".18e"
        path = written(tmp_path, "Datetime,CLOSE\n" + "".join(f"{count:{form}},1\n" for count in counts))
    else:
        path = tmp_path / "prices.parquet"
        parquet.write_table(pyarrow.table({"datetime": counts, "close": [1.0, 1.0]}), path)
    same(read_prices(path), np.array(["2024-01-02T09:35", "2024-01-02T09:40"], "datetime64[s]"), [1.0, 1.0])


def test_parts_of_seconds_are_kept(tmp_path):
    found = read_prices(written(tmp_path, "datetime,close\n1704188100.25,1\n1704188100.75,2\n"))
    assert np.diff(found.times) == np.timedelta64(500, "ms")


def test_decimal_commas(tmp_path):
    found = read_prices(
        written(tmp_path, "datetime;close\n2024-01-02 09:35;10,5\n2024-01-02 09:40;\n;11\n")
    )
    same(found)
