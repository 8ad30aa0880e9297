"""Keeps a copy of all public campaigns in campaigns.json. Stop it and start it again at any time."""

import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request

FILE = "campaigns.json"
DAY = 86_400
HEADERS = {
    "X-API-Key": os.environ["PLEDGEVIEW_KEY"],
    "X-API-Secret": os.environ["PLEDGEVIEW_SECRET"],
}


def get(query):
    """One page, its watermark and its snapshot. Tries again after an error that may disappear."""
    url = "https://api.example/api/v1/projects?" + urllib.parse.urlencode(query)
    request = urllib.request.Request(url, headers=HEADERS)
    for attempt in range(8):
        wait = min(2**attempt, 60)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                as_of = response.headers["X-Data-As-Of"]
                return json.load(response), as_of, response.headers["X-Snapshot-Id"] or as_of
        except urllib.error.HTTPError as error:
            if error.code not in (408, 429, 500, 502, 503, 504):
                raise
            wait = max(wait, int(error.headers.get("Retry-After", 0)))
        except OSError as error:
            print("no answer:", error)
        time.sleep(wait)
    raise SystemExit("The API did not answer. Start again later: nothing is lost.")


def walk(since):
    """The campaigns that changed since then (None: all), the watermark, and whether the pages are of one snapshot."""
    query = {"limit": 100, "offset": 0}
    if since:
        query["updated_since"] = since
    found, first, snapshots = {}, None, set()
    while True:
        body, as_of, snapshot = get(query)
        first = first or as_of
        snapshots.add(snapshot)
        found.update((campaign["id"], campaign) for campaign in body["data"])
        if not body["pagination"]["has_more"]:
            return found, first, len(snapshots) == 1
        query["offset"] += query["limit"]


def save(copy):
    with open(FILE + ".new", "w") as file:
        json.dump(copy, file)
    os.replace(FILE + ".new", FILE)


try:
    with open(FILE) as file:
        copy = json.load(file)
except FileNotFoundError:
    copy = {"as_of": None, "all_at": 0, "campaigns": {}}

while True:
    started = time.time()
    # Once a day, read everything: that is how campaigns that are gone leave the copy.
    everything = started - copy["all_at"] >= DAY
    found, as_of, steady = walk(None if everything else copy["as_of"])
    if everything and steady:
        copy["campaigns"] = found
        copy["all_at"] = started
    else:
        copy["campaigns"].update(found)
    # Pages of two snapshots may have missed a campaign that moved between them: keep the old watermark, and ask again.
    if steady:
        copy["as_of"] = as_of
    save(copy)
    print(len(copy["campaigns"]), "campaigns, as of", copy["as_of"], flush=True)
    time.sleep(max(0, 60 - (time.time() - started)))
