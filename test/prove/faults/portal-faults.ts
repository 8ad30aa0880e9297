/** A person who signs up in the portal, and whose key is made, used and revoked there. */
import { randomBytes } from 'node:crypto'
import type { Credentials } from '../../../services/api-keys/credentials.ts'
import { freePort } from '../../../services/runtime/free-port.ts'
import { startProcess } from '../../support/deployment/service-process.ts'
import { createKey, signIn } from '../../support/portal/access-forms.ts'
import { type Browser, createBrowser, submit } from '../../support/portal/browser.ts'
import { startMailServer } from '../../support/portal/mail-server.ts'
import type { Stage } from '../stage/stage.ts'
import { useUntilRefused } from '../stage/use-until-refused.ts'
import { until } from '../stage/watch.ts'
import { killProjectors } from './projector-faults.ts'

/** While it is made and while it is revoked, projectors are killed. A key that was shown works, and no process admits it after its revocation. */
export async function usePortal(stage: Stage): Promise<void> {
  const mailServer = await startMailServer()
  const url = `http://127.0.0.1:${await freePort()}`
  const portal = await startProcess(['portal'], {
    ...stage.environment,
    PLEDGEVIEW_PORTAL_URL: url,
    PLEDGEVIEW_PORTAL_PORT: new URL(url).port,
    PLEDGEVIEW_API_URL: 'http://127.0.0.1:8080/api/v1',
    PLEDGEVIEW_PORTAL_KEY: randomBytes(32).toString('hex'),
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
