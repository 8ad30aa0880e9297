import json
import os
import urllib.parse
import urllib.request

HEADERS = {
    "X-API-Key": os.environ["PLEDGEVIEW_KEY"],
    "X-API-Secret": os.environ["PLEDGEVIEW_SECRET"],
}


def pages(**query):
    """All pages of a list, one after the other."""
    offset = 0
    while True:
        parameters = urllib.parse.urlencode(query | {"limit": 100, "offset": offset})
        request = urllib.request.Request(
            f"https://api.example/api/v1/projects?{parameters}", headers=HEADERS
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            body = json.load(response)
        yield body["data"]
        if not body["pagination"]["has_more"]:
            return
        offset += 100


print(sum(len(page) for page in pages(category="Games")), "campaigns")
