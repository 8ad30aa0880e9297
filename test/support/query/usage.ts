/** The usage of API keys in a real ClickHouse: a recorder with a clock that the test advances, and the portal's reader. */
import { once } from 'node:events'
import { pino } from 'pino'
import { createUsageReader, type KeyUsage } from '../../../services/portal/usage/usage-reader.ts'
import { createUsageRecorder, type UsageRecorder } from '../../../services/query/usage/usage-recorder.ts'
import type { Sleep } from '../../../services/runtime/async/sleep.ts'
import { createRuntime, type Runtime } from '../../../services/runtime/runtime.ts'
import type { Databases, Tables } from '../../../services/tables/port.ts'

/** A recorder whose loop never wakes: the test flushes. */
export function createTestRecorder(
  tables: Pick<Tables, 'insert'>,
  databases: Databases,
  process: string,
  runtime: Partial<Pick<Runtime, 'now' | 'metrics'> & { keyLimit: number }> = {},
): UsageRecorder {
  const sleep: Sleep = async (_, signal) => {
    if (signal && !signal.aborted) await once(signal, 'abort')
  }
  const real = createRuntime(pino({ level: 'silent' }), runtime.metrics)
  return createUsageRecorder(tables, databases, process, () => undefined, {
    ...{ ...real, sleep, keyLimit: 120 },
    ...runtime,
  })
}

/** What the portal says of one key. */
export async function readUsage(
  tables: Pick<Tables, 'rows'>,
  databases: Databases,
  { key, now }: { key: string; now: number },
): Promise<KeyUsage> {
  const usage = (await createUsageReader({ tables, databases }, () => now)([{ key }])).get(key)
  if (!usage) throw new Error('the reader left the key out')
  return usage
}
