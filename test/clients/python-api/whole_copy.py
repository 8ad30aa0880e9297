"""Reads a whole copy over HTTP with DuckDB, as the guide shows it, and prints what it found."""
import json
import sys

import duckdb
import duckdb_ext

job = json.load(sys.stdin)
with duckdb_ext.init(duckdb.connect()) as db:
    db.execute("LOAD httpfs")
    header = f"MAP {{'Authorization': 'Bearer {job['key']}:{job['secret']}'}}"
    db.execute(f"CREATE SECRET (TYPE http, EXTRA_HTTP_HEADERS {header})")
    # JSON has no decimals and no moments.
    rows = db.sql(
        "SELECT id, creator.name, CAST(pledged_amount AS DOUBLE), len(rewards), strftime(end_date, '%Y-%m-%d') "
        f"FROM '{job['url']}' WHERE status = 'LIVE' ORDER BY id"
    ).fetchall()
print(json.dumps(rows))
