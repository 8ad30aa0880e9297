/** A key that is used of both processes all the time, until each of them knows that it was revoked. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { column } from '../../support/projector/fold-records.ts'
import { intBetween } from '../../support/runner/random.ts'
import { now } from './recorder.ts'
import type { Stage } from './stage.ts'
import { inBackground, until } from './watch.ts'

const pauseMs = 1_200

/** `revoke` asks for the revocation. When that was, and when the ledger had it, is in the log. */
export async function useUntilRefused(
  { recorder, queries, random, tables, databases }: Stage,
  credentials: Credentials,
  revoke: () => Promise<unknown>,
): Promise<void> {
  const { key } = credentials
  const next = random('revoke')
  const admitted = new Set<number>()
  const refused = new Set<number>()
  const request = { reader: 'the revoked', path: '/stats', credentials, expected: [200, 401, 429] }
  const use = async (process: number, signal: AbortSignal) => {
    while (!signal.aborted) {
      const response = await recorder.ask({ ...request, process })
      if (response?.status === 200) admitted.add(process)
      if (response?.status === 401 && admitted.has(process)) refused.add(process)
      await delay(pauseMs)
    }
  }
  const stop = inBackground(signal => Promise.all([...queries.keys()].map(process => use(process, signal))))
  try {
    await until(() => admitted.size === queries.length)
    await delay(intBetween(next, 0, 2_000))
    const askedAt = now()
    await revoke()
    // Not the view of revoked keys: it leaves a key out as soon as the fold has it, which may be before it is asked here.
    const query = `SELECT api_key AS value FROM ${databases.base}.api_key_ledger FINAL
                   WHERE api_key = '${key}' AND NOT is_unrevoked`
    await until(async () => (await column(tables, query)).length > 0)
    recorder.add({ kind: 'revoked', askedAt, at: now(), key })
    // It must not come back when the fold takes it out of the view.
    await until(() => refused.size === queries.length)
    await delay(intBetween(next, 2_000, 4_000))
  } finally {
    await stop()
  }
}
