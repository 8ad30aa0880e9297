/** What bounds the HTTP app: what an operator sets, and what only tests set. */
import type { Config } from '../runtime/config.ts'

/** `pepper`: the one that was used to hash the secrets of the API keys. */
export type QueryAppOptions = Config & typeof appBounds & { pepper: string }

const appBounds = {
  /** Limit on the memory for campaign rows that are kept for pages. */
  rowBytesMax: 64 * 1024 * 1024,
  /** How many statements run at once. */
  statementsMax: 4,
  /** How many statements may wait to start. More are refused at once. */
  waitingStatementsMax: 256,
  /** How many requests that no cache can answer run at once. They start in turn by key. */
  uncachedMax: 64,
  /** How many of them one key may have at once. */
  uncachedPerKeyMax: 2,
  /** How many of them may wait for a turn of their key. More are refused at once. */
  waitingPerKeyMax: 1_000,
  /** How long such a request may wait for its turn. */
  turnMsMax: 10_000,
  /** Time for the headers of a request to arrive. */
  headersTimeoutMs: 10_000,
  /** Time for a whole request to arrive. */
  requestTimeoutMs: 15_000,
  /** Time until an idle connection is closed. */
  keepAliveTimeoutMs: 60_000,
  /**
   * Time without any traffic after which a connection with a running request is closed. Two statements may run, one after the other. A
   * request that has no answer after nine tenths of this time gets an error.
   */
  socketTimeoutMs: 40_000,
  /** Open connections of one address (IPv6: of one /64) whose latest request had no valid credentials. */
  strangersPerAddressMax: 64,
  /** Such connections of all addresses. */
  strangersMax: 512,
  /** Time until such a connection is closed when it is idle. */
  strangerKeepAliveMs: 5_000,
}

/** The options of a service that is set so. */
export function appOptionsOf(config: Config, pepper: string): QueryAppOptions {
  const socketTimeoutMs = Math.max(appBounds.socketTimeoutMs, 3 * config.PLEDGEVIEW_QUERY_MS_MAX)
  return { ...appBounds, ...config, pepper, socketTimeoutMs }
}
