/** Keys that are revoked: one of the platform, and one of a person in the portal. */
import { setTimeout as delay } from 'node:timers/promises'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { freePort } from '../../../services/runtime/free-port.ts'
import { createKey, signIn } from '../../support/portal/access-forms.ts'
import { type Browser, createBrowser, submit } from '../../support/portal/browser.ts'
import { startMailServer } from '../../support/portal/mail-server.ts'
import { column } from '../../support/projector/fold-records.ts'
import { intBetween } from '../../support/runner/random.ts'
import { now } from '../stage/recorder.ts'
import type { Stage } from '../stage/stage.ts'
import { until } from '../stage/watch.ts'
import { killProjectors } from './projector-faults.ts'

const pauseMs = 1_200

/** A key is issued, used of both processes all the time, and revoked. It is used on until each process knows. */
export async function revokeKeys(stage: Stage): Promise<void> {
  const { keys, traffic } = stage
  const { credentials, event } = keys.issue(`account ${traffic.records()}`)
  await traffic.say([event])
  await useUntilRefused(stage, credentials, () => traffic.say([keys.revoke(credentials.key)]))
}

/**
 * A person signs up in the portal, and their key is made, used and revoked there. While it is made and while it is revoked, projectors are
 * killed. A key that was shown works, and no process admits it after its revocation.
 */
export async function usePortal(stage: Stage): Promise<void> {
  const mailServer = await startMailServer()
  const url = `http://127.0.0.1:${await freePort()}`
  const portal = await stage.deployment.startPortal({
    ...stage.loginOf('pledgeview_portal'),
    PLEDGEVIEW_PORTAL_URL: url,
    PLEDGEVIEW_PORTAL_PORT: new URL(url).port,
    PLEDGEVIEW_API_URL: 'http://127.0.0.1:8080/api/v1',
    PLEDGEVIEW_SMTP_URL: mailServer.url,
  })
  try {
    const browser = createBrowser(url)
    await signIn([browser, browser], mailServer, `${stage.traffic.records()}@example.com`, until)
    const beside = async (click: () => Promise<unknown>) =>
      void (await Promise.all([click(), killProjectors(stage)]))
    let shown: Credentials | undefined
    await beside(() =>
      // If no projector runs for too long, the portal shows no secret. Then the person tries again.
      until(async () => {
        await revokeAll(browser)
        const { text } = await createKey({ browser })
        const [key, secret] = [/pv_live_\w{24}/, /pv_secret_\w+/].map(form => form.exec(text)?.[0])
        if (key && secret) shown = { key, secret }
        return shown !== undefined
      }),
    )
    if (!shown) return
    await useUntilRefused(stage, shown, () => beside(() => revokeAll(browser)))
  } finally {
    await portal.stop()
    await mailServer.close()
  }
}

async function revokeAll(browser: Browser): Promise<void> {
  const { text } = await browser.get('/access')
  for (const [, path = ''] of text.matchAll(/href="(\/access\/keys\/[^"/]+\/revoke)"/g))
    await submit(browser, path, /\/revoke$/)
}

/** `revoke` asks for the revocation. When that was, and when the ledger had it, is in the log. */
async function useUntilRefused(
  { recorder, queries, random, tables, databases }: Stage,
  credentials: Credentials,
  revoke: () => Promise<unknown>,
): Promise<void> {
  const { key } = credentials
  const next = random('revoke')
  const admitted = new Set<number>()
  const refused = new Set<number>()
  const request = { reader: 'the revoked', path: '/stats', credentials, expected: [200, 401, 429] }
  let isDone = false
  const use = async (process: number) => {
    while (!isDone) {
      const response = await recorder.ask({ ...request, process })
      if (response?.status === 200) admitted.add(process)
      if (response?.status === 401 && admitted.has(process)) refused.add(process)
      await delay(pauseMs)
    }
  }
  const using = Promise.all([...queries.keys()].map(use))
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
    isDone = true
    await using
  }
}
