/**
 * Two portals on Kafka, ClickHouse and Redis that are killed between a click and its answer: the person finds every key that was
 * made and can revoke it, an account never has more than three active keys, and nobody is signed in as somebody else.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../services/runtime/free-port.ts'
import { openTables } from '../../services/tables/clickhouse/clickhouse.ts'
import { defaultDatabases } from '../../services/tables/generation-log.ts'
import { settingsFor } from '../support/clickhouse/clickhouse.ts'
import type { Deployment } from '../support/deployment/deployment.ts'
import { useLocalDeployment } from '../support/deployment/local-deployment.ts'
import type { LocalServices } from '../support/deployment/local-services.ts'
import type { ServiceProcess } from '../support/deployment/service-process.ts'
import { untilLeads } from '../support/events/kickstarter.ts'
import { createKey, signIn } from '../support/portal/access-forms.ts'
import { type Answer, type Browser, createBrowser, submit } from '../support/portal/browser.ts'
import { type MailServer, startMailServer } from '../support/portal/mail-server.ts'
import { activeKeys } from '../support/projector/fold-records.ts'

// After the page is sent, and then from before the key is in the log on.
const killsAfterMs = ['the answer', 150, 600] as const
const soon = { timeout: 120_000, interval: 200 }
let mailServer: MailServer
let services: LocalServices
let deployment: Deployment

beforeAll(async () => {
  mailServer = await startMailServer()
})
useLocalDeployment({
  prepare: async local => {
    ;({ services, deployment } = local)
    await untilLeads(await deployment.startProjector())
  },
})
afterAll(() => mailServer.close())

test('portals that are killed between a click and its answer', { timeout: 420_000 }, async () => {
  const tables = openTables(settingsFor(services.clickHouse))
  const activeCount = async () => (await activeKeys(tables, defaultDatabases)).length
  const environment = {
    PLEDGEVIEW_PORTAL_URL: `http://127.0.0.1:${await freePort()}`,
    PLEDGEVIEW_API_URL: 'http://127.0.0.1:8080/api/v1',
    PLEDGEVIEW_PORTAL_KEY: randomBytes(32).toString('hex'),
    PLEDGEVIEW_SMTP_URL: mailServer.url,
  }
  const ports = [await freePort(), await freePort()]
  const start = (port: number) =>
    deployment.startPortal({ ...environment, PLEDGEVIEW_PORTAL_PORT: String(port) })
  const portals: ServiceProcess[] = await Promise.all(ports.map(start))
  const started = [...portals]
  for (const { opsUrl } of portals)
    await expect.poll(async () => (await fetch(`${opsUrl}/readyz`)).status).toBe(200)
  // With another key no account would be found, and people would get an announcement twice.
  const announcement = ['--id', 'a', '--subject', 'A', '--text', import.meta.filename]
  for (const args of [['portal'], ['notify', ...announcement]]) {
    const other = { ...environment, PLEDGEVIEW_PORTAL_KEY: 'f'.repeat(64) }
    const { code, stderr } = await deployment.command(args, undefined, other)
    expect([code, stderr]).toEqual([1, expect.stringContaining('PLEDGEVIEW_PORTAL_KEY differs')])
  }

  const people = await Promise.all(['ada@example.com', 'bea@example.com'].map(email => signedIn(email)))
  const [ada] = people
  if (!ada) throw new Error('nobody is signed in')

  const shown = new Set<string>()
  for (const [round, afterMs] of killsAfterMs.entries()) {
    const at = round % 2
    const other = ada.at(1 - at)
    for (const portal of [0, 1])
      await expect.poll(async () => (await ada.at(portal).get('/access')).status, soon).toBe(200)
    const clicked: Promise<Answer | undefined> = createKey({ browser: ada.at(at) }).catch(() => undefined)
    await (afterMs === 'the answer' ? clicked : delay(afterMs))
    portals[at]?.child.kill('SIGKILL')
    const answer = await clicked
    const key = /pv_live_[0-9A-Za-z]{24}/.exec(answer?.text ?? '')?.[0]
    if (answer?.status === 200 && key && /pv_secret_[0-9A-Za-z]+/.test(answer.text)) shown.add(key)
    if (portals[at]?.child.exitCode === null && portals[at]?.child.signalCode === null)
      await once(portals[at].child, 'exit')
    portals[at] = await start(ports[at] ?? 0)
    started.push(portals[at])
    expect(await activeCount()).toBeLessThanOrEqual(3)
    // If no click made a key, the kills would prove nothing.
    expect(shown.size, answer?.text).toBeGreaterThan(0)
    // Whether its secret arrived or not: a key can be revoked, and makes room for the next click.
    // It may be in the log, and not yet in the tables.
    await expect
      .poll(async () => {
        const paths = (await other.get('/access')).text.matchAll(/href="(\/access\/keys\/[^"/]+\/revoke)"/g)
        for (const [, path = ''] of paths) await submit(other, path, /\/revoke$/)
        return activeCount()
      }, soon)
      .toBe(0)
  }
  console.log(`${killsAfterMs.length} kills: ${shown.size} secrets were shown`)
  for (const { output } of started) expect(output()).not.toContain('ada@example.com')
  for (const { email, at } of people) {
    for (const portal of [0, 1]) {
      await expect.poll(async () => (await at(portal).get('/account')).text).toContain(email)
      for (const another of people.filter(one => one.email !== email))
        expect((await at(portal).get('/account')).text).not.toContain(another.email)
    }
  }
  await tables.close()
  const metrics = async () => (await fetch(`${portals[0]?.opsUrl}/metrics`)).text()
  expect(await metrics()).toContain('pledgeview_redis_up{connection="portal"} 1')
  await services.redis.kill()
  await expect.poll(metrics, soon).toContain('pledgeview_redis_up{connection="portal"} 0')

  /** Signs in at both portals. `at` is the same browser at the other portal, too. */
  async function signedIn(email: string): Promise<{ email: string; at: (portal: number) => Browser }> {
    const cookies = new Map<string, string>()
    const browsers = ports.map(port => createBrowser(`http://127.0.0.1:${port}`, cookies))
    const at = (portal: number) => browsers[portal] as Browser
    const until = (holds: () => boolean) => expect.poll(holds).toBe(true)
    expect(await signIn([at(0), at(1)], mailServer, email, until)).toMatchObject({ status: 303 })
    return { email, at }
  }
})
