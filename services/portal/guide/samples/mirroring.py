"""Keeps a copy of all public campaigns in campaigns.sqlite. Stop it and start it again at any time."""

import os

from pledgeview import Client, ClientError, Copy


class Told(Copy):
    def save(self, watermark):
        super().save(watermark)
        print(len(self), "campaigns, as of", watermark, flush=True)


client = Client("https://api.example/api/v1", os.environ["PLEDGEVIEW_KEY"], os.environ["PLEDGEVIEW_SECRET"])
with Told("campaigns.sqlite") as copy:
    try:
        # Started with the latest whole copy, if the API offers one. What is gone is told by the removals.
        for change in client.mirror(store=copy, start=client.whole_copy, held=copy.ids, on_outage=print):
            copy.apply(change)
    except ClientError as error:
        raise SystemExit(error)
