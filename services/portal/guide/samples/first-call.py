import os

from pledgeview import Client, ClientError

client = Client("https://api.example/api/v1", os.environ["PLEDGEVIEW_KEY"], os.environ["PLEDGEVIEW_SECRET"])
try:
    page = client.list(status="LIVE", limit=3)
except ClientError as error:
    raise SystemExit(error)

print(page.pagination["total"], "campaigns are live. The newest:")
for project in page.data:
    print(project["title"], project["url"])
