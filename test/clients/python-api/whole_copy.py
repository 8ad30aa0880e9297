"""Reads a whole copy over HTTP with DuckDB, as the guide shows it, then a file of another host. Prints what it found in the copy."""
import json
import sys

import duckdb
import duckdb_ext

job = json.load(sys.stdin)
with duckdb_ext.init(duckdb.connect()) as db:
    db.execute("LOAD httpfs")
    header = f"MAP {{'Authorization': 'Bearer {job['key']}:{job['secret']}'}}"
    db.execute(f"CREATE SECRET (TYPE http, SCOPE '{job['origin']}/', EXTRA_HTTP_HEADERS {header})")
    # JSON has no decimals and no moments.
    rows = db.sql(
        "SELECT id, creator.name, CAST(pledged_amount AS DOUBLE), len(rewards), strftime(end_date, '%Y-%m-%d') "
        f"FROM '{job['origin']}/api/v1/exports/latest/campaigns.parquet' WHERE status = 'LIVE' ORDER BY id"
    ).fetchall()
    db.sql(f"FROM read_csv('{job['other']}')").fetchall()
print(json.dumps(rows))
