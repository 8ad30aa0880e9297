/**
 * The port `PortalStore`: what the portal keeps for a limited time (sessions, sign-ins under way, claims, counters of its limits).
 *
 * Every value has a time to live. `claim`, `take`, `replace` and `count` are atomic, also between several portals. If the store is
 * away, every call throws within a bounded time.
 */
import type { Check } from '../../runtime/ops/checks.ts'

/**
 * A value that began further ahead than this, ms, is from before the clock was set back. What has to end in time is not accepted then.
 * Clocks of several portals do not differ so much.
 */
export const aheadMsMax = 60_000

export interface PortalStore {
  /** The value; `undefined` if there is none, or if its time is over. */
  get(key: string): Promise<string | undefined>
  /** Keeps the value for this time, ms. It takes the place of an earlier one. */
  put(key: string, value: string, ttlMs: number): Promise<void>
  /** As `put`, but only if there is no value. Resolves with whether it was put: of several callers at once, one puts its value. */
  claim(key: string, value: string, ttlMs: number): Promise<boolean>
  /** As `put`, but only if there is a value: what was removed meanwhile does not come back. Resolves with whether there was. */
  replace(key: string, value: string, ttlMs: number): Promise<boolean>
  /** Removes the value and resolves with it. Of several callers at once, one gets it. */
  take(key: string): Promise<string | undefined>
  /**
   * Adds one and resolves with the sum. The sum ends this long after its first one, ms. If the clock was set back, it ends
   * no later than this long after that.
   */
  count(key: string, windowMs: number): Promise<number>
  /** The state that is reported to an operator. */
  check(): Check
  close(): Promise<void>
}
