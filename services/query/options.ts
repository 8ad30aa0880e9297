/** The options of the query service's HTTP app, with their units and defaults. */

export interface QueryAppOptions {
  /** The pepper that was used to hash the secrets of the API keys. */
  pepper: string
  /** ISO 4217 code of the platform's currency. The amounts of `/stats` are in this currency. */
  platformCurrency: string
  listCacheMs: number
  detailCacheMs: number
  statsCacheMs: number
  /** Limit on the memory for list snapshots. One snapshot of 400,000 campaigns takes 1.6 MB. */
  snapshotBytesMax: number
  /**
   * The list index holds at most this many campaigns. If there are more, ClickHouse computes the lists. 0: it always
   * does.
   */
  indexCampaignsMax: number
  /** Limit on the memory for campaign rows that are kept for pages. */
  rowBytesMax: number
  /** Time limit for one statement: in ClickHouse, for the caller that waits for it, and for its wait to start. */
  statementMsMax: number
  /** How many statements run at once. */
  statementsMax: number
  /** How many statements may wait to start. More are refused at once. */
  waitingStatementsMax: number
  /** How many requests that no cache can answer run at once. They start in turn by key. */
  uncachedMax: number
  /** How many of them one key may have at once. */
  uncachedPerKeyMax: number
  /** How many of them may wait for a turn of their key. More are refused at once. */
  waitingPerKeyMax: number
  /** How long such a request may wait for its turn. */
  turnMsMax: number
  /** Time for the headers of a request to arrive. */
  headersTimeoutMs: number
  /** Time for a whole request to arrive. */
  requestTimeoutMs: number
  /** Time until an idle connection is closed. */
  keepAliveTimeoutMs: number
  /**
   * Time without any traffic after which a connection with a running request is closed. A request that has no answer
   * after nine tenths of it gets an error. Must be above `turnMsMax` and twice `statementMsMax`.
   */
  socketTimeoutMs: number
  /** Connections beyond this number are closed on arrival. */
  connectionsMax: number
  /** Open connections of one address (IPv6: of one /64). See `runtime/http/connections.ts`. */
  connectionsPerAddressMax: number
  /** Those of them whose latest request had no valid credentials. */
  strangersPerAddressMax: number
  /** Such connections of all addresses. */
  strangersMax: number
  /** Time until such a connection is closed when it is idle. */
  strangerKeepAliveMs: number
  /**
   * The addresses and ranges of the proxies in front of this service. The client's address is the last one of
   * `X-Forwarded-For` that is not in this list: what stands before it was written by the client.
   */
  trustProxy: readonly string[]
}

export const defaultQueryAppOptions: Omit<QueryAppOptions, 'pepper'> = {
  platformCurrency: 'USD',
  listCacheMs: 60_000,
  detailCacheMs: 60_000,
  statsCacheMs: 300_000,
  snapshotBytesMax: 256 * 1024 * 1024,
  indexCampaignsMax: 1_000_000,
  rowBytesMax: 64 * 1024 * 1024,
  statementMsMax: 10_000,
  statementsMax: 4,
  waitingStatementsMax: 256,
  uncachedMax: 64,
  uncachedPerKeyMax: 2,
  waitingPerKeyMax: 1_000,
  turnMsMax: 10_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 15_000,
  keepAliveTimeoutMs: 60_000,
  socketTimeoutMs: 40_000,
  connectionsMax: 4096,
  connectionsPerAddressMax: 512,
  strangersPerAddressMax: 64,
  strangersMax: 512,
  strangerKeepAliveMs: 5_000,
  trustProxy: [],
}
