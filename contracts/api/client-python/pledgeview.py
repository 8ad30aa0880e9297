"""Reads the public campaigns of a Pledgeview API, keeps a copy of them up to date, and proves that the copy is right.

    client = Client("https://api.example/api/v1", key, secret)
    with Copy("campaigns.sqlite") as copy:
        for change in client.mirror(store=copy, held=copy.ids):
            copy.apply(change)

It needs Python 3.9 and httpx. Its names and what they promise are those of the TypeScript client, written as Python writes them. It retries
requests that may succeed later, waits when the rate limit requires it, and does not repeat a request within the cache period.
"""
from __future__ import annotations

import datetime
import hashlib
import json
import random
import re
import sqlite3
import time
import urllib.parse
import zlib
from dataclasses import dataclass, field
from typing import Any, Callable, Generator, Iterable, Iterator, List, Literal, Protocol, TypedDict

# The bodies of the API. Generated from the OpenAPI document: do not edit, run "npm run contracts".


class CategoryCount(TypedDict):
    """The number of public campaigns in a category."""

    category: str
    project_count: int


class Creator(TypedDict):
    """The public profile of the campaign's creator."""

    name: str
    profile_url: str
    avatar_url: str | None


class Pagination(TypedDict):
    """The place of this page in the whole list."""

    total: int
    limit: int
    offset: int
    has_more: bool


class Project(TypedDict):
    """A public campaign as shown in lists."""

    id: str
    slug: str
    url: str
    title: str
    subtitle: str | None
    category: str
    subcategory: str | None
    location: str | None
    image_url: str | None
    currency: str
    goal_amount: float
    pledged_amount: float
    percent_funded: float
    backer_count: int
    follower_count: int
    status: Literal['LIVE', 'FUNDED', 'FAILED', 'CANCELLED']
    campaign_type: str
    project_type: str
    is_staff_pick: bool
    has_adult_content: bool
    uses_ai: bool
    tags: List[str]
    launch_date: str | None
    end_date: str | None
    days_remaining: int
    created_at: str
    updated_at: str
    creator: Creator


class ProjectDetail(Project):
    """A public campaign with its texts and reward tiers."""

    description: str
    risks: str
    rewards: List[Reward]


class ProjectListBody(TypedDict):
    """A page of campaigns."""

    data: List[Project]
    pagination: Pagination


class Removal(TypedDict):
    """A campaign that was public and no longer is."""

    id: str
    updated_at: str


class RemovalListBody(TypedDict):
    """A page of removals."""

    data: List[Removal]
    pagination: Pagination
    kept_since: str


class Reward(TypedDict):
    """A reward tier."""

    reward_id: str
    title: str
    description: str
    amount: float
    quantity_available: int | None
    quantity_claimed: int
    quantity_remaining: int | None


class Stats(TypedDict):
    """Statistics of the public campaigns of the platform."""

    currency: str
    total_raised: float
    total_pledges: int
    total_backers: int
    total_creators: int
    projects_total: int
    projects_live: int
    projects_funded: int
    success_rate: float
    average_pledge: float
    categories: List[CategoryCount]
    generated_at: str


# The end of the bodies.

LIMIT_MAX = 100
DAY_MS = 86_400_000
CACHE_MS_MAX = 60_000
# A new snapshot may look this old: ages are whole seconds, rounded up, and one second is added.
NEW_MS_MAX = 2000
_TRANSIENT = ("network_failure", "unstable_walk")


class ClientError(Exception):
    """Every error of the client. `code` is one of the API's, or `network_failure` (no response, or none in time), `unexpected_response`,
    `unstable_walk` or `store_in_use`. The message is for people: print it."""

    def __init__(
        self, code: str, message: str, status: int | None = None, request_id: str | None = None, retry_after_ms: int | None = None
    ) -> None:
        super().__init__(message)
        self.code, self.status, self.request_id, self.retry_after_ms = code, status, request_id, retry_after_ms

    @property
    def is_transient(self) -> bool:
        """Whether it may disappear without a change to the program, its credentials or its settings."""
        return self.code in _TRANSIENT or self.status in (408, 429) or (self.status or 0) >= 500


@dataclass(frozen=True)
class Change:
    """A change to apply to the copy, in the order received. `upsert`: insert `project`, or replace the one with its id; from a whole copy it has
    its texts and rewards. `removed`: the campaign is no longer public."""

    type: Literal["upsert", "removed"]
    id: str
    project: Project | None = None


@dataclass(frozen=True)
class ListAnswer:
    data: List[Project]
    pagination: Pagination
    as_of: str | None
    snapshot_id: str | None


@dataclass(frozen=True)
class WholeCopy:
    """It has every change up to `as_of`."""

    as_of: str
    projects: Iterable[ProjectDetail]


@dataclass(frozen=True)
class Verdict:
    """The copy is equal to the public campaigns of `as_of`. The ids are of campaigns that were wrong, and are repaired: `lacking` were not in the
    copy, `left_over` were not public, and `stale` had another `updated_at`."""

    as_of: str
    was_equal: bool
    lacking: List[str] = field(default_factory=list)
    left_over: List[str] = field(default_factory=list)
    stale: List[str] = field(default_factory=list)


class WatermarkStore(Protocol):
    """Keeps the watermark of a consumer, best in one transaction with the changes before it. One store belongs to one consumer."""

    def load(self) -> str | None: ...

    def save(self, watermark: str) -> None: ...


class Runtime:
    """What the client uses of its surroundings. A test replaces it. Times are Unix milliseconds."""

    def __init__(self) -> None:
        import httpx

        self.http = httpx.Client(follow_redirects=True)
        self.failures: tuple = (httpx.HTTPError, OSError)

    def fetch(self, url: str, headers: dict[str, str], ms_max: float) -> Any:
        """A response of httpx whose body is not read yet."""
        request = self.http.build_request("GET", url, headers=headers, timeout=ms_max / 1000)
        return self.http.send(request, stream=True)

    now: Callable[[], float] = staticmethod(lambda: time.time() * 1000)
    random: Callable[[], float] = staticmethod(random.random)
    sleep: Callable[[float], None] = staticmethod(lambda ms: time.sleep(min(ms, 2**31 - 1) / 1000))


@dataclass
class _Answer:
    status: int
    headers: Any
    text: str
    sent_at: float

    def body(self, *names: str) -> dict[str, Any]:
        try:
            body = json.loads(self.text)
        except ValueError:
            body = None
        if not isinstance(body, dict) or any(name not in body for name in names):
            raise _unexpected("a body without " + ", ".join(names))
        return body

    def lifetime_ms(self) -> int | None:
        seconds = re.search(r"max-age=(\d{1,9})", self.headers.get("cache-control") or "")
        return int(seconds[1]) * 1000 if seconds else None

    def fresh_ms(self) -> int:
        return max(0, (self.lifetime_ms() or 0) - (_whole(self.headers.get("age")) or 0) * 1000)


class _Transport:
    """Sends requests with credentials, pacing, a time limit per attempt, and retries limited in number and time."""

    def __init__(self, base_url: str, key: str, secret: str, attempt_ms_max: int, attempts_max: int, retry_ms_max: int, runtime: Any) -> None:
        _check_base_url(base_url)
        for name, value in (("key", key), ("secret", secret)):
            if not re.fullmatch(r"[\x20-\x7e]+", value):
                raise ValueError(f"{name} must be printable ASCII characters")
        self.base, self.runtime = base_url.rstrip("/"), runtime
        self.headers = {"authorization": f"Bearer {key}:{secret}"}
        self.attempt_ms_max, self.attempts_max, self.retry_ms_max = attempt_ms_max, attempts_max, retry_ms_max
        # None: not known yet. Only a request can tell.
        self.remaining: int | None = None
        self.reset_at = 0.0

    def get(self, path: str, etag: str | None = None) -> _Answer:
        return self._retried(lambda: self._read(path, etag))

    def open(self, path: str) -> Any:
        return self._retried(lambda: self._send(path, {})[0])

    def _retried(self, attempt: Callable[[], Any]) -> Any:
        first_failure_at, failures = None, 0
        while True:
            self._admit()
            try:
                return attempt()
            except ClientError as error:
                if not error.is_transient:
                    raise
                now = self.runtime.now()
                first_failure_at, failures = first_failure_at or now, failures + 1
                # Full jitter, so that clients that failed together do not retry together.
                wait = (error.retry_after_ms or 0) + self.runtime.random() * min(30_000, 500 * 2**failures)
                if failures >= self.attempts_max or now + wait - first_failure_at > self.retry_ms_max:
                    raise
                self.runtime.sleep(wait)

    def _read(self, path: str, etag: str | None) -> _Answer:
        response, sent_at = self._send(path, {"if-none-match": etag} if etag else {})
        answer = _Answer(response.status_code, response.headers, self._text(response, sent_at), sent_at)
        if answer.status != 304 and not answer.text.lstrip().startswith("{"):
            raise self._error(answer, response)
        return answer

    def _send(self, path: str, more: dict[str, str]) -> Any:
        sent_at = self.runtime.now()
        try:
            response = self.runtime.fetch(self.base + path, {**self.headers, **more}, self.attempt_ms_max)
        except self.runtime.failures as error:
            raise self._lost(error) from error
        self._learn(response.headers)
        if response.status_code == 200 or (response.status_code == 304 and more):
            return response, sent_at
        raise self._error(_Answer(response.status_code, response.headers, self._text(response, sent_at), sent_at), response)

    def _text(self, response: Any, sent_at: float) -> str:
        body = bytearray()
        try:
            for part in response.iter_bytes():
                body += part
                if self.runtime.now() - sent_at > self.attempt_ms_max:
                    raise TimeoutError(f"none within the time limit of {self.attempt_ms_max} ms")
        except self.runtime.failures as error:
            raise self._lost(error) from error
        finally:
            response.close()
        return body.decode("utf-8", "replace")

    def _lost(self, error: Exception) -> ClientError:
        return ClientError("network_failure", f"no response from {self.base}: {error or type(error).__name__}")

    def _error(self, answer: _Answer, response: Any) -> ClientError:
        retry_after = _whole(answer.headers.get("retry-after"))
        rest = (answer.status, answer.headers.get("x-request-id"), None if retry_after is None else retry_after * 1000)
        redirected = f" (after a redirect to {str(response.url).split('?')[0]})" if response.history else ""
        try:
            error = json.loads(answer.text)["error"]
            code, message = str(error["code"]), str(error["message"])
        except (ValueError, KeyError, TypeError):
            place = f"from {self.base}{redirected}"
            if answer.status >= 500:
                return ClientError("unexpected_response", f"status {answer.status} without an error of this API {place}", *rest)
            return ClientError("unexpected_response", str(_unexpected(f"status {answer.status} {place}")), *rest)
        hint = f" ({_BASE_HINT})" if code == "not_found" and not self.base.endswith("/api/v1") else ""
        return ClientError(code, f"{code}: {message}{hint}{redirected}", *rest)

    def _admit(self) -> None:
        if self.remaining is not None and self.remaining <= 0:
            # The window is a minute. A wrong clock must not make a client wait longer.
            wait = min(self.reset_at - self.runtime.now(), 61_000)
            if wait > 0:
                self.runtime.sleep(wait)
            self.remaining = None
        if self.remaining is not None:
            self.remaining -= 1

    def _learn(self, headers: Any) -> None:
        now = self.runtime.now()
        said, reset = _whole(headers.get("x-ratelimit-remaining")), _whole(headers.get("x-ratelimit-reset"))
        # A delay does not depend on the clocks.
        delay = re.search(r";t=(\d+)", headers.get("ratelimit") or "")
        if said is not None and (delay or reset is not None):
            self.remaining, self.reset_at = said, now + int(delay[1]) * 1000 if delay else (reset or 0) * 1000


@dataclass
class _Page:
    projects: List[Project]
    total: int
    has_more: bool
    as_of: int
    snapshot_id: str
    digest: str | None
    # The snapshot was taken between these two moments of the client's clock.
    taken_at: float
    received_at: float
    fresh_until: float
    lifetime_ms: int


@dataclass
class _End:
    """The summary of all pages of a walk. `as_of` is the `updated_since` of the next one."""

    as_of: float
    is_one_snapshot: bool = False
    digest: str | None = None
    taken_at: float = float("-inf")
    fresh_until: float = 0


@dataclass
class _Removals:
    removals: List[Removal]
    as_of: float
    kept_since: float


class _Walk:
    """Walks all pages of a list without missing a campaign, however long it takes. When the snapshot changes on the way, it asks what has changed,
    and goes back in the new snapshot to campaigns that it has seen and that have not changed: all unseen ones are behind them. client/walk.ts
    says why this is safe."""

    def __init__(self, client: Client, page_size: int, since: float | None, **filters: Any) -> None:
        self.client, self.page_size, self.since, self.filters = client, page_size, since, filters
        self.pages_read, self.pages_max, self.seen_at = 0, 100, float("-inf")
        self.snapshot_ids: dict[str, None] = {}
        self.latest, self.end = float("-inf"), _End(float("inf"), True, None, float("inf"), float("inf"))
        # The last 1,000 campaigns that were seen, with the launch date, which determines the place in the order, and `as_of` of their pages.
        self.trail: dict[str, tuple[str | None, int]] = {}

    def run(self) -> Generator[List[Project], None, _End]:
        offset, snapshot_id, page = 0, None, None
        while True:
            page = page or self._page_at(offset)
            if snapshot_id is not None and page.snapshot_id != snapshot_id:
                offset, snapshot_id, page = self._after_crossing(offset)
                continue
            if offset == 0:
                self.trail.clear()
            for project in page.projects:
                _keep(self.trail, project["id"], (project["launch_date"], page.as_of), 1000)
            yield page.projects
            if not page.has_more:
                self.end.is_one_snapshot = len(self.snapshot_ids) == 1
                self.end.digest = self.end.digest if self.end.is_one_snapshot else None
                return self.end
            offset, snapshot_id, page = offset + self.page_size, page.snapshot_id, None

    def _read(self, **parameters: Any) -> _Page:
        self.pages_read += 1
        if self.pages_read > self.pages_max:
            raise ClientError("unstable_walk", f"the pages still changed after {self.pages_max} of them had been read")
        return self.client._page(**parameters, **self.filters)

    def _page_at(self, offset: int) -> _Page:
        page, end = self._read(limit=self.page_size, offset=offset, updated_since=self.since), self.end
        self.pages_max = max(self.pages_max, 100 + 4 * -(-page.total // self.page_size))
        end.as_of, self.latest, self.last_as_of = min(end.as_of, page.as_of), max(self.latest, page.as_of), page.as_of
        if page.snapshot_id not in self.snapshot_ids:
            self.seen_at = max(self.seen_at, page.received_at)
        self.snapshot_ids[page.snapshot_id] = None
        end.digest = end.digest or page.digest
        end.taken_at, end.fresh_until = min(end.taken_at, page.taken_at), min(end.fresh_until, page.fresh_until)
        return page

    def _after_crossing(self, crossing: int) -> tuple:
        start = (0, None, None)
        since = min((as_of for _, as_of in self.trail.values()), default=float("inf"))
        while crossing > self.page_size:
            known = set(self.snapshot_ids)
            # The new snapshot may be an older one, of another process.
            since = min(since, self.last_as_of)
            changed = self._changes_since(since)
            if changed is None:
                return start
            anchors, snapshot_id = 0, None
            for offset in range(crossing - self.page_size, max(0, crossing - 1000), -self.page_size):
                page = self._page_at(offset)
                snapshot_id = snapshot_id or page.snapshot_id
                if page.snapshot_id != snapshot_id or snapshot_id not in known or page.as_of < since:
                    break
                anchors += sum(
                    project["id"] not in changed and self.trail.get(project["id"], ("",))[0] == project["launch_date"] for project in page.projects
                )
                # One anchor is not enough: it may have changed itself.
                if anchors >= 2:
                    return offset, snapshot_id, page
            else:
                return start
        return start

    def _changes_since(self, as_of: float) -> set | None:
        """The ids that changed, from one snapshot that was taken after those of all pages so far."""
        for tries in range(3):
            self.client.runtime.sleep(_ms_until(self.seen_at + NEW_MS_MAX, self.client.runtime.now(), NEW_MS_MAX))
            ids, snapshot_id, offset = set(), None, 0
            while True:
                # One millisecond earlier is another query, so the cache has no older response for it.
                page = self._read(limit=LIMIT_MAX, offset=offset, updated_since=as_of - tries)
                snapshot_id = snapshot_id or page.snapshot_id
                if page.snapshot_id != snapshot_id or page.as_of < self.latest or page.taken_at < self.seen_at:
                    break
                if page.total > 5000:
                    return None
                ids.update(project["id"] for project in page.projects)
                if not page.has_more:
                    return ids
                offset += LIMIT_MAX
        return None


class _Reported:
    """What was yielded in this walk and the one before, so that an unchanged campaign is not yielded again."""

    def __init__(self) -> None:
        self.before: dict[str, str] = {}
        self.present: dict[str, str] = {}

    def is_news(self, state: Any) -> bool:
        # `updated_at` changes with everything that readers can see, except `days_remaining`. That of a removal is never the campaign's own.
        updated_at = state["updated_at"]
        known = self.present.get(state["id"]) or self.before.get(state["id"])
        _keep(self.present, state["id"], updated_at, 10_000)
        return updated_at != known

    def end_walk(self) -> None:
        self.before, self.present = self.present, {}


Changes = Generator[Change, None, Any]


class Client:
    """Every method raises `ClientError`, or `ValueError` for an option that can never be valid. It sends nothing before the first call."""

    def __init__(
        self, base_url: str, key: str, secret: str, *, attempt_ms_max: int = 30_000, attempts_max: int = 6, retry_ms_max: int = 180_000,
        runtime: Any = None,
    ) -> None:
        self.runtime = runtime or Runtime()
        self._transport = _Transport(base_url, key, secret, attempt_ms_max, attempts_max, retry_ms_max, self.runtime)
        self._kept: dict[str, Any] = {}
        self._stores_in_use: List[Any] = []

    def list(
        self, *, status: str | None = None, category: str | None = None, sort: str | None = None, limit: int | None = None,
        offset: int | None = None, updated_since: str | None = None,
    ) -> ListAnswer:
        """`GET /projects`: one page. With `updated_since` and a filter, it lacks every campaign that no longer matches the filter."""
        since = None if updated_since is None else moment_of(updated_since, "updated_since")
        answer = self._get(_list_path(limit=limit, offset=offset, status=status, category=category, sort=sort, updated_since=since))
        body, headers = answer.body("data", "pagination"), answer.headers
        return ListAnswer(body["data"], body["pagination"], headers.get("x-data-as-of"), headers.get("x-snapshot-id"))

    def projects(self, *, status: str | None = None, category: str | None = None) -> Iterator[Project]:
        """All campaigns that match, newest first, page by page. None is missed, even if campaigns move between the pages."""
        seen = set()
        for projects in _Walk(self, LIMIT_MAX, None, status=status, category=category).run():
            for project in projects:
                if project["id"] not in seen:
                    seen.add(project["id"])
                    yield project

    def detail(self, slug: str) -> ProjectDetail:
        """`GET /projects/{slug}`, with texts and rewards. Raises `not_found` if no public campaign has this slug."""
        if slug in (".", ".."):
            # As the last part of a path, these lead to another resource.
            raise ClientError("not_found", f"no public campaign has the slug {slug}")
        return self._get("/projects/" + urllib.parse.quote(slug, safe="!'()*")).body("data")["data"]

    def stats(self) -> Stats:
        """`GET /stats`: the totals of the platform."""
        return self._get("/stats").body("data")["data"]

    def whole_copy(self) -> WholeCopy | None:
        """The latest whole copy; None if the service offers none. Its campaigns are read while you iterate over them, and the service ends a
        download after half an hour, or five minutes without reading: if you take longer, store the file first, and read it with
        `read_whole_copy`."""
        try:
            response = self._transport.open("/exports/latest/campaigns.ndjson.gz")
        except ClientError as error:
            if error.code == "not_found":
                return None
            raise
        as_of = response.headers.get("x-data-as-of") or ""
        try:
            _moment_in(as_of, "a whole copy without a valid X-Data-As-Of")
        except ClientError:
            response.close()
            raise
        return WholeCopy(as_of, read_whole_copy(self._parts(response)))

    def mirror(
        self, *, store: WatermarkStore | None = None, start: Callable[[], WholeCopy | None] | None = None,
        interval_ms: float = 60_000, held: Callable[[], Iterable[str]] | None = None, reconcile_every_ms: float = DAY_MS,
        on_outage: Callable[[ClientError], None] | None = None, page_size: int = LIMIT_MAX,
    ) -> Generator[Change, None, None]:
        """Yields every change of the public campaigns, without end: first all campaigns, or the changes since the watermark of the store, then
        those of each poll. A change counts as processed when you ask for the next one. The watermark is saved when a whole walk is processed. So a
        program that is killed and starts again receives some changes twice, and misses none.

        `start`: the whole copy to start with in place of a walk, `client.whole_copy`. `held`: the ids that you hold, to find what is gone where the
        removals cannot tell: if you were away for longer than they are kept, and every `reconcile_every_ms` if the service does not tell them. After
        a start that resumes, the first one then comes with the second poll.
        `on_outage`: called when a poll has failed after all retries; the mirror then goes on. Default: it raises."""
        _check_range("interval_ms", interval_ms, 1000)
        _check_range("reconcile_every_ms", reconcile_every_ms, interval_ms if held else 0)
        sync = _Sync(self, page_size)
        return self._with_store(store, lambda since, save: sync.follow(since, save, start, interval_ms, held, reconcile_every_ms, on_outage))

    def reconcile(
        self, *, held: Iterable[str] = (), store: WatermarkStore | None = None, page_size: int = LIMIT_MAX,
    ) -> Generator[Change, None, None]:
        """Walks all pages once: an upsert for each public campaign, then a removal for each held one that is gone. Do not run it beside a mirror
        of the same copy."""
        sync = _Sync(self, page_size)

        def work(_: int | None, save: Callable[[str], None]) -> Changes:
            save(stamp_of((yield from sync.compare(set(held))).as_of))

        return self._with_store(store, work)

    def verify(
        self, *, held: Callable[[], Iterable[Any]], apply: Callable[[Change], None], store: WatermarkStore | None = None,
        page_size: int = LIMIT_MAX,
    ) -> Verdict:
        """Proves that a copy is equal to the public campaigns, by their digest, or repairs it and tells what was wrong. If the copy is right, this
        takes one request. `held` gives what the copy holds, each with `id` and `updated_at`. End the mirror of the copy before."""
        sync = _Sync(self, page_size)
        changes = self._with_store(store, lambda since, save: sync.verify(held, since, save))
        try:
            while True:
                apply(next(changes))
        except StopIteration as end:
            return end.value
        finally:
            changes.close()

    def _with_store(self, store: WatermarkStore | None, work: Callable[[int | None, Callable[[str], None]], Changes]) -> Changes:
        if any(used is store for used in self._stores_in_use):
            raise ClientError("store_in_use", "another iteration uses this watermark store")
        if store is None:
            return (yield from work(None, lambda watermark: None))
        self._stores_in_use.append(store)
        try:
            stored = store.load()
            since = None if stored is None else moment_of(stored, "the stored watermark")
            if since is not None and since > self.runtime.now() + DAY_MS:
                message = "the stored watermark is in the future by this computer's clock: check the clock, or the store"
                raise ClientError("invalid_parameter", message)
            return (yield from work(since, store.save))
        finally:
            self._stores_in_use[:] = [used for used in self._stores_in_use if used is not store]

    def _get(self, path: str) -> _Answer:
        """Within its cache period an answer is returned without a request. After that, a conditional request asks whether it is still valid."""
        before = self._kept.get(path)
        answer, received_at, fresh_until = before or (None, 0, 0)
        # A clock that was set back makes no answer younger.
        if answer is None or not received_at <= self.runtime.now() < fresh_until:
            known, answer = answer, self._transport.get(path, answer and answer.headers.get("etag"))
            if known and answer.status == 304:
                answer.text = known.text
            received_at = self.runtime.now()
            fresh_until = received_at + answer.fresh_ms()
        # Another thread's request may have been answered meanwhile. What it kept may be newer.
        if self._kept.get(path) is before:
            _keep(self._kept, path, (answer, received_at, fresh_until), 64)
        return answer

    def _page(self, **parameters: Any) -> _Page:
        answer = self._transport.get(_list_path(**parameters))
        received_at, body, headers = self.runtime.now(), answer.body("data", "pagination"), answer.headers
        as_of = _moment_in(headers.get("x-data-as-of"), "a list without a valid X-Data-As-Of")
        age = _whole(headers.get("age"))
        return _Page(
            body["data"], body["pagination"]["total"], body["pagination"]["has_more"], as_of,
            headers.get("x-snapshot-id") or headers["x-data-as-of"], headers.get("x-data-digest"),
            # One second more, because the service may show the tables as they were a second before.
            answer.sent_at - (CACHE_MS_MAX if age is None else age * 1000) - 1000, received_at, received_at + answer.fresh_ms(),
            CACHE_MS_MAX if answer.lifetime_ms() is None else answer.lifetime_ms(),
        )

    def _removals(self, since: float | None) -> _Removals | None:
        """None: the service does not tell removals. client/removals.ts says why it goes on from the last one that it has."""
        found, crossings = _Removals([], float("inf"), float("-inf")), 0
        while crossings < 5:
            snapshot_id, offset = None, 0
            while True:
                path = f"/removals?limit={LIMIT_MAX}&offset={offset}" + ("" if since is None else f"&since={stamp_of(since)}")
                try:
                    answer = self._transport.get(path)
                except ClientError as error:
                    if error.code == "not_found":
                        return None
                    raise
                body = answer.body("data", "pagination", "kept_since")
                snapshot_id = snapshot_id or answer.headers.get("x-snapshot-id")
                if answer.headers.get("x-snapshot-id") != snapshot_id:
                    break
                found.removals += body["data"]
                found.as_of = min(found.as_of, _moment_in(answer.headers.get("x-data-as-of"), "removals without a valid X-Data-As-Of"))
                found.kept_since = max(found.kept_since, _moment_in(body["kept_since"], "removals without a valid kept_since"))
                if not body["pagination"]["has_more"]:
                    return found
                offset += LIMIT_MAX
            reached = _moment_in(found.removals[-1]["updated_at"], "a removal without a valid updated_at") if found.removals else since
            crossings, since = (crossings + 1 if reached == since else 0), reached
        raise ClientError("unstable_walk", "the pages of removals changed during every reading")

    def _parts(self, response: Any) -> Iterator[bytes]:
        try:
            yield from response.iter_bytes()
        except self.runtime.failures as error:
            raise ClientError("network_failure", "the whole copy broke off") from error
        finally:
            response.close()


class _Sync:
    """Keeps a copy up to date: repeated walks, each from the watermark of the one before. client/sync.ts and client/verify.ts say why."""

    def __init__(self, client: Client, page_size: int) -> None:
        _check_range("page_size", page_size, 1, LIMIT_MAX)
        self.client, self.runtime, self.page_size, self.reported = client, client.runtime, page_size, _Reported()

    def walk(self, since: float | None) -> Generator[List[Project], None, _End]:
        return _Walk(self.client, self.page_size, since).run()

    def follow(self, since, save, start, interval_ms, held, every_ms, on_outage) -> Changes:
        now, removals = self.runtime.now, self.client._removals
        # client/sync.ts says what each is for.
        removed_since, told_until, reconcile_at = None, since, now() + interval_ms
        while True:
            started_at = now()
            # A clock that was set back must not put the comparison off.
            reconcile_at = min(reconcile_at, started_at + every_ms)
            next_at = started_at + interval_ms
            try:
                gone = None if since is None else removals(removed_since)
                if since is not None and gone is not None and gone.as_of < since:
                    since = gone.as_of
                    save(stamp_of(since))
                is_untold = started_at >= reconcile_at if gone is None else gone.kept_since > (told_until or 0)
                is_reconciling = since is None or (held is not None and is_untold)
                copy = start() if since is None and start is not None else None
                if is_reconciling:
                    end = yield from self.compare(set(held() if held else ()), copy)
                else:
                    end = yield from self.changes(since, gone)
                save(stamp_of(end.as_of))
                # A copy may be a day old.
                next_at = started_at if copy else next_at
                if is_reconciling or gone is not None:
                    told_until, reconcile_at = end.as_of, started_at + every_ms
                if not is_reconciling and gone is not None:
                    removed_since = end.as_of
                # The same query would return the same response.
                if end.as_of == since:
                    next_at = max(next_at, end.fresh_until)
                since = end.as_of
            except ClientError as error:
                if on_outage is None or not error.is_transient:
                    raise
                on_outage(error)
            self.runtime.sleep(_ms_until(next_at, now(), next_at - started_at))

    def compare(self, held: set, copy: WholeCopy | None = None) -> Changes:
        """Walks everything, or reads a whole copy, then yields a removal for each held campaign that is gone. That is certain only after a walk of
        the changes that stayed within one snapshot, taken after the ids were collected."""
        started_at, missing, as_of, since = self.runtime.now(), set(held), float("inf"), None
        self.reported.before, self.reported.present = {}, {}
        for round in range(10):
            end = yield from (self.copied(copy, missing) if copy and round == 0 else self.upserts(since, missing))
            as_of = min(as_of, end.as_of)
            if not missing or (end.is_one_snapshot and end.taken_at >= started_at):
                for id in sorted(missing):
                    yield Change("removed", id)
                end.as_of = as_of
                return end
            self.runtime.sleep(_ms_until(started_at + NEW_MS_MAX, self.runtime.now(), NEW_MS_MAX))
            # A slightly earlier moment: otherwise this could equal an earlier poll, whose responses are still cached.
            since = end.as_of - 1 - round
        raise ClientError("unstable_walk", "in 10 attempts, no walk of the changes stayed within one new snapshot")

    def changes(self, since: float | None, gone: _Removals | None) -> Changes:
        """The removals, and then what has changed. Of two states of a campaign, the later one counts."""
        left: dict[str, str] = {}
        for removal in gone.removals if gone else ():
            left[removal["id"]] = removal["updated_at"]
            if self.reported.is_news(removal):
                yield Change("removed", removal["id"])
        end = yield from self.upserts(since, set(), left)
        end.as_of = min(end.as_of, gone.as_of if gone else float("inf"))
        return end

    def copied(self, copy: WholeCopy, missing: set) -> Changes:
        for project in copy.projects:
            missing.discard(project["id"])
            self.reported.is_news(project)
            yield Change("upsert", project["id"], project)
        self.reported.end_walk()
        return _End(moment_of(copy.as_of, "as_of of the whole copy"))

    def upserts(self, since: float | None, missing: set, left: dict[str, str] | None = None) -> Changes:
        pages = self.walk(since)
        while True:
            try:
                projects = next(pages)
            except StopIteration as end:
                self.reported.end_walk()
                return end.value
            for project in projects:
                missing.discard(project["id"])
                if project["updated_at"] >= (left or {}).get(project["id"], "") and self.reported.is_news(project):
                    yield Change("upsert", project["id"], project)

    def verify(self, held, since, save) -> Changes:
        wrong: dict[str, dict[str, None]] = {"lacking": {}, "left_over": {}, "stale": {}}
        # A walk of all campaigns found nothing wrong. While campaigns change, a row may be newer than the digest of its list.
        is_right = False
        for walks in range(4):
            copy, is_told = {row["id"]: row["updated_at"] for row in held()}, True
            for _ in range(3):
                as_of, told, is_equal = yield from self.caught_up(since, copy)
                if is_equal or since is not None:
                    save(stamp_of(as_of))
                if is_equal:
                    return _verdict(as_of, wrong)
                is_told = told is not None
                # The same request would get the same answer.
                if since is None or since == as_of:
                    break
                since = as_of
            if walks > 0 and (is_right or not is_told):
                return _verdict(since, wrong)
            if walks == 3:
                break
            found: dict[str, dict[str, None]] = {"lacking": {}, "left_over": {}, "stale": {}}
            since = yield from self.repaired(since, copy, found)
            is_right = not any(found.values())
            for kind, ids in found.items():
                wrong[kind].update(ids)
            save(stamp_of(since))
        raise ClientError("unstable_walk", "the copy still differs after 3 repairs: check that apply changes what held returns")

    def caught_up(self, since: float | None, copy: dict[str, str]) -> Changes:
        """One poll. The removals are read only if the changes alone do not make the copy equal."""
        if since is None:
            page = self.client._page(limit=1)
            return page.as_of, page.digest, page.digest == digest_of(copy)
        pages = self.walk(since)
        while True:
            try:
                projects = next(pages)
            except StopIteration as stop:
                end = stop.value
                break
            for project in projects:
                # It may come from an answer that is older than the copy.
                if project["updated_at"] > copy.get(project["id"], ""):
                    copy[project["id"]] = project["updated_at"]
                    yield Change("upsert", project["id"], project)
        # A service with very many campaigns has the digest only with the list of all, whose answer may be as old as the cache allows.
        told = end if end.digest else self.client._page(limit=1)
        if told.digest == digest_of(copy):
            return min(end.as_of, told.as_of), end.digest, True
        gone = self.client._removals(since)
        for removal in gone.removals if gone else ():
            if removal["updated_at"] > copy.get(removal["id"], removal["updated_at"]):
                del copy[removal["id"]]
                yield Change("removed", removal["id"])
        as_of, is_equal = min(end.as_of, gone.as_of if gone else end.as_of), told.digest == digest_of(copy)
        return min(as_of, told.as_of) if is_equal else as_of, end.digest, is_equal

    def repaired(self, since: float | None, copy: dict[str, str], wrong: dict[str, dict[str, None]]) -> Changes:
        # From then on no cached answer is older than the copy.
        self.runtime.sleep(self.client._page(limit=1).lifetime_ms + NEW_MS_MAX)
        watermark = "9" if since is None else stamp_of(since)
        changes = self.compare(set(copy))
        while True:
            try:
                change = next(changes)
            except StopIteration as end:
                as_of = end.value.as_of
                break
            if change.project is None:
                wrong["left_over"][change.id] = None
            else:
                # What changed after the copy's watermark was not wrong.
                known, updated_at = copy.get(change.id), change.project["updated_at"]
                if known == updated_at:
                    continue
                copy[change.id] = updated_at
                if known is None and updated_at < watermark:
                    wrong["lacking"][change.id] = None
                if known is not None and (updated_at < watermark or known > updated_at):
                    wrong["stale"][change.id] = None
            yield change
        later = None if since is None else self.client._removals(since)
        for removal in later.removals if later else ():
            wrong["left_over"].pop(removal["id"], None)
        return as_of


class Copy:
    """A copy of the campaigns in a file of SQLite, with the watermark: a store for `mirror`, `reconcile` and `verify`. The changes of a walk and
    its watermark are saved in one transaction. An error that leaves the `with` undoes what was applied since the last watermark. Other processes
    that may write into its folder may read the file meanwhile: changes are in a second file beside it (`-wal`) until SQLite puts them into the
    first. It has to be on a local disk."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path)
        # In the other modes a reader that takes long keeps the mirror from saving.
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("CREATE TABLE IF NOT EXISTS campaigns (id TEXT PRIMARY KEY, updated_at TEXT NOT NULL, body TEXT NOT NULL)")
        self.db.execute("CREATE TABLE IF NOT EXISTS watermark (only INTEGER PRIMARY KEY CHECK (only = 1), as_of TEXT NOT NULL)")

    def load(self) -> str | None:
        row = self.db.execute("SELECT as_of FROM watermark").fetchone()
        return row and row[0]

    def save(self, watermark: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO watermark VALUES (1, ?)", (watermark,))
        self.db.commit()

    def apply(self, change: Change) -> None:
        if change.project is None:
            self.db.execute("DELETE FROM campaigns WHERE id = ?", (change.id,))
        else:
            row = (change.id, change.project["updated_at"], json.dumps(change.project))
            self.db.execute("INSERT OR REPLACE INTO campaigns VALUES (?, ?, ?)", row)

    def held(self) -> Iterator[dict[str, str]]:
        """For `verify`."""
        return ({"id": id, "updated_at": at} for id, at in self.db.execute("SELECT id, updated_at FROM campaigns"))

    def ids(self) -> Iterator[str]:
        """For `held` of a mirror."""
        return (row["id"] for row in self.held())

    def projects(self) -> Iterator[Project]:
        return (json.loads(body) for (body,) in self.db.execute("SELECT body FROM campaigns ORDER BY id"))

    def __len__(self) -> int:
        return self.db.execute("SELECT count(*) FROM campaigns").fetchone()[0]

    def __enter__(self) -> Copy:
        return self

    def __exit__(self, error: Any, *_: Any) -> None:
        # A `reconcile` without a store saves no watermark.
        if error is None:
            self.db.commit()
        self.db.close()


def read_whole_copy(parts: Iterable[bytes]) -> Iterator[ProjectDetail]:
    """The campaigns of `campaigns.ndjson.gz`: an open file, or the parts of a download. Raises `ClientError` if it breaks off."""
    gunzip, rest = zlib.decompressobj(wbits=31), b""
    for part in parts:
        try:
            *lines, rest = (rest + gunzip.decompress(part)).split(b"\n")
        except zlib.error as error:
            raise ClientError("network_failure", f"the whole copy broke off: {error}") from error
        try:
            campaigns = [json.loads(line) for line in lines]
        except ValueError:
            raise _unexpected("a copy with a line that is not JSON") from None
        yield from campaigns
    # gzip has its length and a checksum at its end, and nothing after it.
    if not gunzip.eof or gunzip.unused_data:
        raise ClientError("network_failure", "the whole copy broke off")
    if rest:
        raise _unexpected("a copy whose last line does not end")


def to_frame(projects: Iterable[Project]) -> Any:
    """A pandas data frame with a row for each campaign, by id. Times are in UTC; pandas 2 has none after 2262-04-11, and gets NaT for them.
    `creator` has a column for each of its fields."""
    import pandas

    frame = pandas.json_normalize(list(projects), max_level=1)
    for name in [name for name in frame.columns if name.endswith(("_date", "_at"))]:
        frame[name] = pandas.to_datetime(frame[name], utc=True, errors="coerce")
    return frame.set_index("id") if len(frame) else frame


def digest_of(copy: dict[str, str]) -> str:
    """The digest of a copy (`updated_at` by id), to compare it with `X-Data-Digest`."""
    numbers = (int.from_bytes(hashlib.sha256(f"{id}|{at}".encode()).digest()[:8], "big") for id, at in copy.items())
    return f"{len(copy)}-{sum(numbers) % 2**64:016x}"


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MS = datetime.timedelta(milliseconds=1)
_BASE_HINT = "Check base_url: it must be the address of the API, which ends in /api/v1"


def moment_of(text: str, name: str) -> int:
    """Unix milliseconds of an ISO 8601 timestamp with a zone, or of a date."""
    try:
        moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00") if "T" in text else f"{text}T00:00:00+00:00")
        return (moment - _EPOCH) // _MS
    except (ValueError, TypeError):
        raise ClientError("invalid_parameter", f"{name} is not an ISO 8601 timestamp") from None


def _moment_in(text: str | None, without: str) -> int:
    """Of a response; `without` says what it is if the moment is missing or wrong."""
    try:
        return moment_of(text or "", without)
    except ClientError:
        raise _unexpected(without) from None


def stamp_of(moment: float) -> str:
    return (_EPOCH + moment * _MS).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _verdict(as_of: float, wrong: dict[str, dict[str, None]]) -> Verdict:
    return Verdict(stamp_of(as_of), not any(wrong.values()), *(list(ids) for ids in wrong.values()))


def _keep(kept: dict[str, Any], name: str, value: Any, size_max: int) -> None:
    kept.pop(name, None)
    kept[name] = value
    if len(kept) > size_max:
        del kept[next(iter(kept))]


def _list_path(limit=None, offset=None, status=None, category=None, sort=None, updated_since=None) -> str:
    since = None if updated_since is None else stamp_of(updated_since)
    given = {"limit": limit, "offset": offset or None, "status": status, "category": category, "sort": sort, "updated_since": since}
    query = urllib.parse.urlencode({name: value for name, value in given.items() if value is not None})
    return "/projects" + (query and f"?{query}")


def _unexpected(what: str) -> ClientError:
    return ClientError("unexpected_response", f"not a response of this API: {what}. {_BASE_HINT}")


def _check_base_url(base_url: str) -> None:
    """The text is not repeated in an error: it may contain a password."""
    if not re.match(r"https?://[^\s/]", base_url):
        raise ValueError("base_url must be an http or https address")
    if re.search(r"[\s\x00-\x1f\x7f]", base_url):
        raise ValueError("base_url must have no white space")
    parts = urllib.parse.urlsplit(base_url)
    if "@" in parts.netloc:
        raise ValueError("base_url must have no user name: use key and secret")
    try:
        parts.port
    except ValueError:
        raise ValueError("base_url must have a port from 0 to 65535, or none") from None
    if parts.query or parts.fragment:
        raise ValueError("base_url must end with its path, without ? or #")


def _check_range(name: str, value: float, low: float, high: float = float("inf")) -> None:
    if not low <= value <= high or (value != int(value) if value != float("inf") else False):
        raise ValueError(f"{name} must be a whole number from {low} to {high}")


def _ms_until(at: float, now: float, ms_max: float) -> float:
    """At most `ms_max`: a clock that was set back must not make a wait longer."""
    return min(max(0, at - now), ms_max)


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\d{1,15}", text) else None
