/** `pledgeview portal`, twice, on Kafka, ClickHouse and Redis, with a mail server. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../../services/runtime/free-port.ts'
import { type Deployment, deploy } from '../support/deployment.ts'
import { createBrowser } from '../support/portal/browser.ts'
import { type MailServer, startMailServer } from '../support/portal/mail-server.ts'
import type { ServiceProcess } from '../support/service-process.ts'
import { useDistributedServices } from '../support/services/distributed.ts'

const services = useDistributedServices()
let mailServer: MailServer
let deployment: Deployment

beforeAll(async () => {
  mailServer = await startMailServer()
})

afterAll(async () => {
  await deployment?.stop()
  await mailServer.close()
})

test('a person signs in at one portal and is signed in at the other', { timeout: 180_000 }, async () => {
  const { addresses, settings } = services()
  deployment = await deploy(addresses, settings)
  await deployment.startProjector()
  const portalUrl = `http://127.0.0.1:${await freePort()}`
  const environment = {
    PLEDGEVIEW_PORTAL_URL: portalUrl,
    PLEDGEVIEW_API_URL: 'http://127.0.0.1:8080/api/v1',
    PLEDGEVIEW_PORTAL_KEY: randomBytes(32).toString('hex'),
    PLEDGEVIEW_SMTP_URL: mailServer.url,
  }
  const portals: ServiceProcess[] = []
  const ports: number[] = []
  for (let count = 0; count < 2; count++) {
    const port = await freePort()
    ports.push(port)
    portals.push(await deployment.startPortal({ ...environment, PLEDGEVIEW_PORTAL_PORT: String(port) }))
  }
  for (const { opsUrl } of portals)
    await expect.poll(async () => (await fetch(`${opsUrl}/readyz`)).status).toBe(200)
  const cookies = new Map<string, string>()
  const [first, second] = ports.map(port => createBrowser(`http://127.0.0.1:${port}`, cookies))
  await first?.get('/sign-in')
  expect(await first?.post('/sign-in', { email: 'ada@example.com' })).toMatchObject({ status: 303 })
  const code = /^ {4}(\d{4} \d{4})$/m.exec(mailServer.mails.at(-1)?.email.text ?? '')?.[1] ?? ''
  await first?.get('/sign-in/code')
  expect(await first?.post('/sign-in/code', { code })).toMatchObject({ status: 303, location: '/access' })
  // The other portal finds the new account in the ledger.
  await expect.poll(async () => (await second?.get('/account'))?.status).toBe(200)
  for (const { output } of portals) expect(output()).not.toContain('ada@example.com')
})
