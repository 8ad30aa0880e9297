import json
import os
import urllib.request

request = urllib.request.Request(
    "https://api.example/api/v1/projects?status=LIVE&limit=3",
    headers={
        "X-API-Key": os.environ["PLEDGEVIEW_KEY"],
        "X-API-Secret": os.environ["PLEDGEVIEW_SECRET"],
    },
)
with urllib.request.urlopen(request, timeout=30) as response:
    body = json.load(response)

print(body["pagination"]["total"], "campaigns are live. The newest:")
for project in body["data"]:
    print(project["title"], project["url"])
