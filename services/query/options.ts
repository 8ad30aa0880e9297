/** The settings of the query service's HTTP app, with their units and defaults. */

export interface QueryAppOptions {
  /** The pepper under which the secrets of API keys were hashed. */
  pepper: string
  /** ISO 4217 code of the platform's own currency, which `/stats` is in. */
  platformCurrency: string
  /** How far the watermark of a list stays behind ClickHouse's clock. The projector's setting of the same name. */
  commitHorizonMs: number
  listCacheMs: number
  detailCacheMs: number
  statsCacheMs: number
  /** Bound on the list snapshots that are kept. One of 400,000 campaigns takes about 8 MB. */
  snapshotBytesMax: number
  /** Campaigns that the list index holds at most; with more, lists are computed by ClickHouse. 0: always. */
  indexCampaignsMax: number
  /** Bound on the rows of campaigns that are kept for pages. */
  rowBytesMax: number
  /** Bound on one statement, in ClickHouse and on the wait for it, and on the wait for a place to run. */
  statementMsMax: number
  /** Statements that run side by side. */
  statementsMax: number
  /** Statements that wait for a place; more are refused at once. */
  waitingStatementsMax: number
  /** For a request's headers to arrive. */
  headersTimeoutMs: number
  /** For a whole request to arrive. */
  requestTimeoutMs: number
  /** For the next request on an idle connection. */
  keepAliveTimeoutMs: number
  /** For anything at all to move on a connection with a request in progress. Above twice `statementMsMax`. */
  socketTimeoutMs: number
  /** Connections beyond this are closed on arrival. */
  connectionsMax: number
  /** Which proxies' `X-Forwarded-For` is believed: none, all, or the listed addresses and ranges. */
  trustProxy: boolean | readonly string[]
}

export const defaultQueryAppOptions: Omit<QueryAppOptions, 'pepper'> = {
  platformCurrency: 'USD',
  commitHorizonMs: 5000,
  listCacheMs: 60_000,
  detailCacheMs: 60_000,
  statsCacheMs: 300_000,
  snapshotBytesMax: 256 * 1024 * 1024,
  indexCampaignsMax: 1_000_000,
  rowBytesMax: 64 * 1024 * 1024,
  statementMsMax: 10_000,
  statementsMax: 4,
  waitingStatementsMax: 256,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 15_000,
  keepAliveTimeoutMs: 60_000,
  socketTimeoutMs: 30_000,
  connectionsMax: 4096,
  trustProxy: false,
}
