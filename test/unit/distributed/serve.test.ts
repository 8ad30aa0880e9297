import Fastify from 'fastify'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { serve } from '../../../services/distributed/serve.ts'
import { closing } from '../../../services/runtime/async/closing.ts'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { defaultDatabases as databases } from '../../../services/tables/generation-log.ts'
import type { Tables } from '../../../services/tables/port.ts'

/** What `/status` says of a watermark of this age, if a projector's session lasts this long. */
async function stoppedAt(foldSeconds: number, sessionMs: number): Promise<string | undefined> {
  const config = readConfig({ PLEDGEVIEW_OPS_PORT: '0', PLEDGEVIEW_KAFKA_SESSION_MS: String(sessionMs) })
  const rows = async ({ query }: { query: string }) =>
    query.includes('.about') ? [{ at: '2026-11-29T12:00:00.000Z', at_ms: 1, age: foldSeconds }] : []
  const tables = { rows } as unknown as Tables
  const ended = new AbortController()
  const said = Promise.withResolvers<string>()
  const logger = pino({ level: 'silent' })
  const given = { config, logger, signal: ended.signal, say: said.resolve }
  const served = { app: Fastify(), port: 0, tables, databases, metrics: createMetrics() }
  const running = closing(open =>
    serve(open, given, { ...served, service: 'query', readiness: () => ({}), readyText: url => url }),
  )
  const [, opsUrl] = /ops: (\S+)\)/.exec(await Promise.race([said.promise, running.then(String)])) ?? []
  const status = (await (await fetch(`${opsUrl}/status`)).json()) as { stopped: { reason: string } | null }
  ended.abort()
  await running
  await served.app.close()
  return status.stopped?.reason
}

test('a process says that no projector leads only after the broker has had the time to let another one lead', async () => {
  expect(await stoppedAt(70, 10_000)).toContain('no projector has led the fold since')
  expect(await stoppedAt(70, 90_000)).toBeUndefined()
  expect(await stoppedAt(141, 90_000)).toContain('no projector has led the fold since')
})
