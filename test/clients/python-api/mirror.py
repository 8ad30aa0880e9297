"""Uses the Python client as its guide does, over real HTTP, and prints what it saw as JSON. The job comes as JSON on stdin."""
import json
import sqlite3
import sys
import textwrap
import time

import pledgeview
from pledgeview import Change, Client, ClientError, Copy, Runtime, to_frame


class Enough(Exception):
    pass


class Short(Copy):
    """Its mirror ends with the first watermark."""

    def save(self, watermark):
        super().save(watermark)
        raise Enough


class Hurried(Runtime):
    """A mirror ends before its second poll. No cached answer is older than the copy here, so nothing waits for it."""

    ends = False

    def sleep(self, ms):
        if self.ends and ms > 0:
            raise Enough
        if ms < 62_000:
            time.sleep(ms / 1000)


job = json.load(sys.stdin)
runtime = Hurried()
client = Client(job["baseUrl"], job["key"], job["secret"], runtime=runtime)
seen = {"live": [project["id"] for project in client.projects(status="LIVE")]}
page = client.list(status="FUNDED", limit=5)
seen["page"] = {"ids": [project["id"] for project in page.data], **page.pagination}
seen["detail"], seen["stats"] = client.detail(job["slug"]), client.stats()
try:
    Client(job["baseUrl"], job["key"], "wrong").stats()
except ClientError as error:
    seen["refused"] = {"status": error.status, "message": str(error)}
try:
    Client(job["nobody"], job["key"], job["secret"], attempts_max=1).stats()
except ClientError as error:
    seen["lost"] = {"code": error.code, "message": str(error)}

with Copy(job["file"]) as copy:
    runtime.ends = True
    try:
        for change in client.mirror(store=copy, start=client.whole_copy):
            copy.apply(change)
    except Enough:
        runtime.ends = False
    seen["copied"] = len(copy)
    seen["texts"] = all("description" in project for project in copy.projects())
with Copy(job["file"]) as copy:
    seen["kept"] = copy.load()
    first, second = list(copy.ids())[:2]
    copy.db.execute("DELETE FROM campaigns WHERE id = ?", (first,))
    copy.db.execute("UPDATE campaigns SET updated_at = '2020-01-01T00:00:00.000Z' WHERE id = ?", (second,))
    copy.db.execute("INSERT INTO campaigns VALUES ('extra', '2020-01-01T00:00:00.000Z', '{}')")
    # A report that another process writes of the copy, slowly.
    reader = sqlite3.connect(job["file"]).execute("SELECT id FROM campaigns")
    reader.fetchone()
    for name in ("wrong", "equal"):
        verdict = client.verify(held=copy.held, apply=copy.apply, store=copy)
        seen[name] = [verdict.was_equal, verdict.lacking, verdict.left_over, verdict.stale]
    frame = to_frame(copy.projects())
    types = [str(frame[name].dtype) for name in ("created_at", "backer_count", "pledged_amount")]
    seen["frame"] = {"shape": list(frame.shape)[:1], "types": types, "creator": sorted(set(frame["creator.name"]))}
    seen["frame"]["withoutEnd"] = list(frame.index[frame["end_date"].isna()])
try:
    with Copy(job["file"]) as copy:
        copy.apply(Change("upsert", "half", {"id": "half", "updated_at": "2020-01-01T00:00:00.000Z"}))
        raise Enough
except Enough:
    seen["half"] = sqlite3.connect(job["file"]).execute("SELECT count(*) FROM campaigns WHERE id = 'half'").fetchone()
# The mirror in the head of the module, after years.
with Copy(job["file"]) as copy:
    copy.db.execute("INSERT INTO campaigns VALUES ('left', '2020-01-01T00:00:00.000Z', '{}')")
    copy.save("2020-01-01T00:00:00.000Z")
head = textwrap.dedent("\n".join(line for line in pledgeview.__doc__.splitlines() if line.startswith("    ")))
try:
    exec(head, {"Client": lambda *_: client, "Copy": lambda _: Short(job["file"]), "key": "", "secret": ""})
except Enough:
    seen["again"] = sorted(Copy(job["file"]).ids())
print(json.dumps(seen))
