"""The demo itself: each step in its order, and what is printed about it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa

from esker.demo import branch, pipeline, questions, readback
from esker.demo import checks as check
from esker.demo.chart import draw_chart
from esker.demo.expected import expected_table
from esker.demo.report import MONTHS, Report
from esker.demo.session import LOG, start_spark
from esker.demo.source import find_source


def run(*, output: Path, months: int = 12, rows: int = 1000, seed: int = 2013) -> int:
    """Run every step.

    Args:
        output: folder for the table, the chart and the unpacked source; made if it is missing.
        months: how many months of 2013 to load, so how many versions the table gets.
        rows: how many random rows to take.
        seed: seed of the random rows.

    Returns:
        0 if every check passed, else 1.
    """
    report = Report()
    table_path = output / "flights.lance"
    chart_path = output / "flights.png"
    uri = str(table_path.resolve())
    period = f"{MONTHS[0]} to {MONTHS[months - 1]} 2013"
    report.title(
        "esker: one pipeline, end to end",
        "Spark cleans and joins the flights that left New York in 2013 and appends\n"
        "them to a versioned Lance table, month by month. Then Spark and Python read it\n"
        "back, and every total is checked against the CSV files.",
    )

    with report.step("Find the source data"):
        source = find_source(output / "source")
        for name, path in source.paths().items():
            report.line(f"{name:<10}{path.stat().st_size / 1e6:8.1f} MB  [dim]{path}[/dim]")

    with report.step("Start Spark"):
        spark = start_spark(output / "spark")
        report.line(
            f"Spark {spark.version}, {spark.sparkContext.defaultParallelism} cores, log in {output / 'spark' / LOG}"
        )
    try:
        with report.step("Read, clean and join the CSV files"):
            flights = pipeline.join_all(spark, source).cache()
            report.line(
                f"{flights.count():,} flights with {len(flights.columns)} columns; NA is null, times are moments in UTC"
            )

        with report.step(f"Append {period} to a table, a commit a month", spinner=False):
            report.code('month.write.format("esker").mode("append").save(uri)')
            if table_path.exists():
                shutil.rmtree(table_path)
                report.line("[dim]the table of an earlier run was removed[/dim]")
            written = pipeline.append_months(flights, uri, months)
            list(report.progress(written, months, [*MONTHS[:months], "done"]))
            history = readback.list_versions(uri)
            report.table(
                ["version", "committed", "data files", "rows"],
                ((version.number, version.committed, version.fragments, version.rows) for version in history),
            )
            size = sum(path.stat().st_size for path in table_path.rglob("*") if path.is_file())
            report.line(f"{size / 1e6:.1f} MB in [cyan]{table_path}[/cyan]")

        with report.step("Read it back, through Spark and through Python"):
            report.code('spark.read.format("esker").load(uri)\nesker.dataset(uri).to_table()')
            through_spark = readback.read_with_spark(spark, uri)
            through_python = readback.read_with_python(uri)
            report.line(f"Spark: {through_spark.num_rows:,} rows; Python: {through_python.num_rows:,} rows")

        with report.step("Ask three questions"):
            answers = questions.ask_all(spark, uri)
            print_answers(report, answers)

        with report.step(f"Take {rows:,} random rows"):
            report.code("esker.dataset(uri).take(row_numbers)")
            numbers, taken = readback.take_random_rows(uri, rows=rows, seed=seed)
            report.line("the first three of them:")
            print_flights(report, numbers[:3], taken.slice(0, 3))

        with report.step("Go back in time"):
            report.code("esker.dataset(uri, version=n)\nesker.dataset(uri).checkout_version(n)")
            past = history[(len(history) - 1) // 2]
            counts = readback.count_at_version(spark, uri, past.number)
            report.line(
                f"version {past.number} still has its {counts.opened:,} rows; the latest has {history[-1].rows:,}"
            )

        with report.step("Publish January by a branch"):
            report.code(
                'with branch.transact("January") as tx: ...   # a Lance and a Delta table, together\n'
                'repository.add_hook("pre-merge", audit)\nbranch.merge_into("main")'
            )
            published = branch.publish_january(spark, through_python, output / "lake")
            report.line(f"refused first: [yellow]{published.refused}[/yellow]; mended on the branch, then merged")
            for message in published.commits:
                report.line(f"[dim]{message}[/dim]")
    finally:
        spark.stop()

    with report.step("Check it all against the CSV files, by pyarrow alone"):
        expected = expected_table(source, months)
        checks = [
            *check.check_values(expected, through_spark=through_spark, through_python=through_python),
            *check.check_months(expected, [version.rows for version in history]),
            *check.check_taken(expected, numbers, through_python, taken),
            *(
                check.Check(f"rows of version {past.number}, {way}", past.rows, count)
                for way, count in (
                    ("opened", counts.opened),
                    ("checked out", counts.checked_out),
                    ("by Spark", counts.spark),
                )
            ),
            *check.check_answers(expected, answers),
            *check.check_published(expected, published),
        ]
        report.checks(checks)

    with report.step("Draw a chart"):
        draw_chart(answers, period=period, flights=expected.num_rows, path=chart_path)
        report.line(f"saved to [cyan]{chart_path}[/cyan]")

    report.timings()
    failed = [item.name for item in checks if not item.passed]
    if failed:
        report.console.print(
            f"\n[bold red]{len(failed)} of {len(checks)} checks failed:[/bold red] {'; '.join(failed)}"
        )
        return 1
    report.console.print(
        f"\n[bold green]All {len(checks)} checks passed.[/bold green] The table is yours: esker.dataset({uri!r})\n"
    )
    return 0


def percent(share: float | None) -> str:
    """A share in per cent."""
    return "-" if share is None else f"{share:.1%}"


def minutes(value: float | None) -> str:
    """A delay in minutes."""
    return "-" if value is None else f"{value:.1f}"


def print_answers(report: Report, answers: questions.Answers) -> None:
    """The three answers as tables."""
    report.line("[bold]Which airline brings its passengers there on time?[/bold] (DataFrame)")
    report.table(
        ["airline", "flights", "cancelled", "over 15 min late", "mean delay, min"],
        (
            (row["airline"], row["flights"], percent(row["cancelled"]), percent(row["late"]), minutes(row["arr_delay"]))
            for row in answers.airlines.to_pylist()
        ),
    )
    report.line("\n   [bold]What does poor visibility do to a departure?[/bold] (SQL)")
    report.code(questions.WEATHER_SQL, "sql")
    report.table(
        ["visibility", "flights", "cancelled", "mean delay, min"],
        (
            (row["visibility"], row["flights"], percent(row["cancelled"]), minutes(row["dep_delay"]))
            for row in answers.weather.to_pylist()
        ),
    )
    report.line("\n   [bold]When should one fly?[/bold] (DataFrame; mean departure delay in minutes)")
    report.code('spark.read.format("esker").option("columns", ...).option("filter", "dep_delay IS NOT NULL").load(uri)')
    report.heat(answers.hours)


def print_flights(report: Report, numbers: list[int], flights: pa.Table) -> None:
    """A few flights, a line each."""
    report.table(
        ["row", "scheduled (UTC)", "flight", "from", "to", "delay, min"],
        (
            (
                number,
                f"{row['scheduled']:%Y-%m-%d %H:%M}",
                f"{row['carrier']} {row['flight']}",
                row["origin"],
                row["dest_name"] or row["dest"],
                "cancelled" if row["cancelled"] else str(row["dep_delay"]),
            )
            for number, row in zip(numbers, flights.to_pylist(), strict=True)
        ),
    )
