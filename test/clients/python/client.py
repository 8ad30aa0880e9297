"""Does what an analyst does from Python, with clickhouse-connect, pandas and pyarrow.

Reads its job from stdin as JSON, and prints the results as one JSON object. Every number is printed as text, so that JSON
does not round it.
"""

import io
import json
import sys
import urllib.parse
import urllib.request
from datetime import datetime

import clickhouse_connect
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
from clickhouse_connect.driver.exceptions import Error

CAMPAIGNS = "SELECT * FROM campaigns ORDER BY campaign_id"


def main():
    job = json.load(sys.stdin)
    client = clickhouse_connect.get_client(
        host=job["host"],
        port=job["httpPort"],
        username=job["user"],
        database=job["database"],
        # By default a timestamp has no zone.
        tz_mode="aware",
    )
    seen = {
        "columns": columns(client, job["database"]),
        "campaigns": rows(client, CAMPAIGNS),
        "rewards": rows(client, "SELECT * FROM rewards ORDER BY campaign_id, reward_id"),
        "categories": rows(client, "SELECT * FROM categories ORDER BY category"),
        "totals": rows(client, "SELECT * FROM platform_totals"),
        "forbidden": refusal(lambda: client.query("SELECT * FROM pledgeview_read_1.campaigns")),
        "broken": refusal(lambda: break_midway(client)),
        "withinBounds": client.query(
            "SELECT getSetting('max_threads')", settings={"max_threads": 1, "max_execution_time": 30}
        ).result_rows[0][0],
        "frame": data_frame(client),
        "summary": summary(client),
        "arrow": table(client.query_arrow(CAMPAIGNS)),
        "parquet": table(pq.read_table(io.BytesIO(download(job, f"{CAMPAIGNS} FORMAT Parquet")))),
    }
    json.dump(seen, sys.stdout)


def columns(client, database):
    found = client.query(
        """SELECT table AS view, name, type, comment FROM system.columns
           WHERE database = {database:String} ORDER BY table, position""",
        parameters={"database": database},
    )
    return list(found.named_results())


def rows(client, query):
    return [plain(row) for row in client.query(query).named_results()]


def break_midway(client):
    """A query that fails on the server after a part of its result has arrived."""
    query = "SELECT throwIf(number = 900000, 'it broke') FROM numbers(1000000)"
    with client.query_row_block_stream(query) as blocks:
        for _ in blocks:
            pass


def data_frame(client):
    frame = client.query_df(CAMPAIGNS)
    types = {name: str(type) for name, type in frame.dtypes.items()}
    return {"types": types, "rows": [plain(row) for row in frame.to_dict("records")]}


def summary(client):
    """What describe() describes, and sums of groups, as in a notebook. Nothing is converted."""
    frame = client.query_df(CAMPAIGNS)
    numbers = ["goal", "pledged", "pledged_platform", "percent"]
    return {
        "described": [name for name in frame.describe().columns if name in numbers],
        "byCategory": {name: float(raised) for name, raised in frame.groupby("category")["pledged_platform"].sum().items()},
    }


def table(arrow_table):
    types = {field.name: str(field.type) for field in arrow_table.schema}
    return {"types": types, "rows": [plain(row) for row in arrow_table.to_pylist()]}


def download(job, query):
    """Plain HTTP, as with curl."""
    parameters = urllib.parse.urlencode({"user": job["user"], "database": job["database"], "query": query})
    with urllib.request.urlopen(f"http://{job['host']}:{job['httpPort']}/?{parameters}") as response:
        return response.read()


def refusal(work):
    try:
        work()
    except Error as error:
        return {"code": getattr(error, "code", None), "message": str(error)}
    return None


def plain(value):
    """The value for JSON. Times as ISO 8601."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, str):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    return str(value)


main()
