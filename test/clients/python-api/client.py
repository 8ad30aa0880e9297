"""Uses the client that openapi-python-client generated: lists, reads and pages, and prints what it saw as JSON.

The job comes as JSON on stdin. The generated package `campaigns` is on the path.
"""

import datetime
import json
import sys

from campaigns import AuthenticatedClient
from campaigns.api.platform import get_stats
from campaigns.api.projects import get_project, list_projects
from campaigns.models import ErrorBody, ListProjectsSort, ListProjectsStatus

job = json.load(sys.stdin)


def client_for(secret):
    return AuthenticatedClient(base_url=job["baseUrl"], token=f"{job['key']}:{secret}", raise_on_unexpected_status=True)


def walk(client):
    """All pages of one snapshot: the ids, and how many pages there were."""
    ids, pages, has_more = [], 0, True
    while has_more:
        page = list_projects.sync(client=client, limit=job["pageSize"], offset=len(ids))
        pages += 1
        ids += [project.id for project in page.data]
        has_more = page.pagination.has_more
    return ids, pages


def error_of(response):
    assert isinstance(response.parsed, ErrorBody), response
    return {"status": int(response.status_code), "code": response.parsed.error.code.value}


with client_for(job["secret"]) as client:
    first = list_projects.sync_detailed(client=client, limit=job["pageSize"])
    ids, pages = walk(client)
    since = datetime.datetime.fromisoformat(first.headers["X-Data-As-Of"].replace("Z", "+00:00"))
    changed = list_projects.sync(client=client, updated_since=since)
    filtered = list_projects.sync(
        client=client,
        status=ListProjectsStatus.FUNDED,
        category=job["category"],
        sort=ListProjectsSort.MOST_BACKED,
    )
    detail = get_project.sync(job["slug"], client=client).data
    stats = get_stats.sync(client=client).data
    again = get_stats.sync_detailed(client=client, if_none_match=get_stats.sync_detailed(client=client).headers["ETag"])
    seen = {
        "ids": ids,
        "pages": pages,
        "changed": changed.pagination.total,
        "filtered": [project.id for project in filtered.data],
        "first": first.parsed.data[0].to_dict(),
        "detail": detail.to_dict(),
        "launchedIn": detail.launch_date.utcoffset().total_seconds(),
        "stats": stats.to_dict(),
        "again": int(again.status_code),
        "unknown": error_of(get_project.sync_detailed("no-such-slug", client=client)),
        "invalid": error_of(list_projects.sync_detailed(client=client, limit=101)),
    }

with client_for("wrong") as client:
    seen["refused"] = error_of(get_stats.sync_detailed(client=client))

print(json.dumps(seen))
