"""Analyses a table: reads the input JSON, writes statistics as JSON and a chart as a file."""

import io
import json
import os
import sys
import tempfile

# matplotlib writes a font cache, and the home folder may be read-only.
os.environ.setdefault("MPLCONFIGDIR", tempfile.mkdtemp())

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd

ROWS_MAX = 1_000_000
COLUMNS_MAX = 200
GROUPS_MAX = 50
BARS_MAX = 20
CORRELATIONS_MAX = 10
TOP = 3
TEXT_CHARS_MAX = 80


class InputError(Exception):
    """An error that the caller can correct."""


def read_table(given):
    source = io.StringIO(given["csv"]) if "csv" in given else given.get("path")
    if source is None:
        raise InputError("give the table as `csv`, or the name of a file sent along as `path`")
    try:
        table = pd.read_csv(source, sep=None, engine="python", nrows=ROWS_MAX, encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"path: {given['path']!r} is not there; send the file with the run")
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise InputError(f"the table cannot be read: {error}")
    if len(table.columns) > COLUMNS_MAX:
        raise InputError(f"the table has {len(table.columns)} columns, at most {COLUMNS_MAX} are analysed")
    table.columns = [str(name).strip() for name in table.columns]
    for name in table.columns:
        if is_text(table[name]):
            table[name] = as_dates(table[name])
    return table


def is_text(column):
    return pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)


def as_dates(column):
    """The column as dates, if every present value is a date."""
    present = column.dropna().astype(str)
    if present.empty or not present.str.match(r"\d{4}-\d{2}-\d{2}").all():
        return column
    dates = pd.to_datetime(column, format="ISO8601", errors="coerce", utc=True)
    return column if dates.isna().sum() > column.isna().sum() else dates.dt.tz_localize(None)


def kind(column):
    if pd.api.types.is_bool_dtype(column):
        return "boolean"
    if pd.api.types.is_datetime64_any_dtype(column):
        return "date"
    if pd.api.types.is_numeric_dtype(column):
        return "number"
    return "text"


def plain(number):
    """A number valid in JSON, rounded to six decimals; whole numbers as integers."""
    if pd.isna(number) or number in (float("inf"), float("-inf")):
        return None
    number = round(float(number), 6)
    return int(number) if number.is_integer() else number


def describe(name, column):
    told = {
        "name": name,
        "type": kind(column),
        "missing": int(column.isna().sum()),
        "distinct": int(column.nunique()),
    }
    present = column.dropna()
    if present.empty:
        return told
    if told["type"] == "number":
        low, high = present.quantile(0.25), present.quantile(0.75)
        reach = 1.5 * (high - low)
        told |= {
            "min": plain(present.min()),
            "max": plain(present.max()),
            "mean": plain(present.mean()),
            "median": plain(present.median()),
            "stddev": plain(present.std()),
            "outliers": int(((present < low - reach) | (present > high + reach)).sum()),
        }
    elif told["type"] == "date":
        told |= {"min": present.min().date().isoformat(), "max": present.max().date().isoformat()}
    else:
        counts = present.astype(str).str.slice(0, TEXT_CHARS_MAX).value_counts()
        # Sort equal counts by name, so that the same table always gives the same result.
        top = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:TOP]
        told["top"] = [{"value": value, "count": int(count)} for value, count in top]
    return told


def correlations(table):
    numbers = table[[name for name in table.columns if kind(table[name]) == "number"]]
    matrix = numbers.corr()
    names = list(numbers.columns)
    pairs = [
        {"a": a, "b": b, "r": plain(matrix.iloc[i, j])}
        for i, a in enumerate(names)
        for j, b in enumerate(names[:i])
    ]
    pairs = [pair for pair in pairs if pair["r"] is not None]
    return sorted(pairs, key=lambda pair: -abs(pair["r"]))[:CORRELATIONS_MAX]


def column(table, given, member):
    name = given[member]
    if name not in table.columns:
        known = ", ".join(repr(known) for known in table.columns)
        raise InputError(f"{member}: there is no column {name!r}; there are {known}")
    return name


def grouped(table, given, value):
    """The value of each group, in output order."""
    by = column(table, given, "group")
    how = given.get("how", "sum")
    if how != "count" and value is None:
        raise InputError("value: the table has no column of numbers; use `how`: `count`")
    is_date = kind(table[by]) == "date"
    keys = table[by].dt.strftime("%Y-%m") if is_date else table[by].astype("string").str.slice(0, TEXT_CHARS_MAX)
    groups = table.groupby(keys.rename("group"))
    series = groups.size() if how == "count" else groups[value].agg(how)
    series = series.sort_index()
    if not is_date:
        series = series.sort_values(ascending=False, kind="stable")
    return by, how, is_date, series


def draw(chart, series, labels, path):
    figure, axes = plt.subplots(figsize=(9, 5), dpi=120, layout="constrained")
    if chart == "histogram":
        axes.hist(series.dropna(), bins=min(30, max(5, int(len(series) ** 0.5))), color="#2a7f9e", edgecolor="white")
    elif chart == "line":
        axes.plot(series.index, series.values, marker="o", color="#2a7f9e")
        axes.tick_params(axis="x", rotation=45)
        axes.set_ylim(bottom=min(0, series.min()))
    else:
        shown = series.head(BARS_MAX)[::-1]
        axes.barh([str(name) for name in shown.index], shown.values, color="#2a7f9e")
    axes.set_title(labels["title"])
    axes.set_xlabel(labels["x"])
    axes.set_ylabel(labels["y"])
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


def main():
    with open(os.environ["SANDBOX_INPUT_FILE"], encoding="utf-8") as file:
        given = json.load(file)
    table = read_table(given)
    numbers = [name for name in table.columns if kind(table[name]) == "number"]
    value = column(table, given, "value") if "value" in given else next(iter(numbers), None)
    if value is not None and value not in numbers:
        raise InputError(f"value: {value!r} is no column of numbers; those are {numbers}")
    chart, groups = given.get("chart", "auto"), None
    if "group" in given:
        by, how, is_date, series = grouped(table, given, value)
        rows = [{"name": str(name), "value": plain(total)} for name, total in series.head(GROUPS_MAX).items()]
        groups = {"group": by, "value": value, "how": how, "rows": rows, "more": max(0, len(series) - GROUPS_MAX)}
        what = "count" if how == "count" else f"{how} of {value}"
        chart = ("line" if is_date else "bar") if chart == "auto" else chart
        labels = {"title": f"{what} by {by}", "x": by, "y": what}
        if chart == "bar":
            labels |= {"x": what, "y": by}
    elif value is not None:
        series, chart = table[value], "histogram" if chart == "auto" else chart
        labels = {"title": f"distribution of {value}", "x": value, "y": "rows"}
    else:
        series = None
    if chart == "histogram" and value is not None:
        series, labels = table[value], {"title": f"distribution of {value}", "x": value, "y": "rows"}
    name = None
    if series is not None and len(series) and chart != "none":
        name = "chart.png"
        labels["title"] = given.get("title", labels["title"])
        draw(chart, series, labels, os.path.join(os.environ["SANDBOX_FILES_DIR"], name))
    answer = {
        "rows": len(table),
        "columns": [describe(name, table[name]) for name in table.columns],
        "correlations": correlations(table),
        "groups": groups,
        "chart": name,
    }
    with open(os.environ["SANDBOX_OUTPUT"], "w", encoding="utf-8") as file:
        json.dump(answer, file, ensure_ascii=False, allow_nan=False)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(f"data-analysis: {error}", file=sys.stderr)
        sys.exit(2)
