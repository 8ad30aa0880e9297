/** The embedded service with a few campaigns, its mails, and the API as a consumer's shell calls it. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openJournalWriter } from '../../services/log/local/journal.ts'
import { makeDataDirectory, startServiceProcess } from '../support/deployment/service-process.ts'
import { campaignEvent, newRecordOf, pledgeEvent } from '../support/events/sample-events.ts'

export type Portal = Awaited<ReturnType<typeof startPortal>>

const campaigns = 3

export async function startPortal() {
  const directory = makeDataDirectory()
  const service = await startServiceProcess(['--no-demo', '--data-dir', directory.path])
  const writer = await openJournalWriter(join(directory.path, 'journal.sqlite'))
  for (let n = 1; n <= campaigns; n++) {
    const campaign_id = `campaign-${n}`
    const events = [campaignEvent({ campaign_id }), pledgeEvent({ campaign_id, pledge_id: `p${n}` })]
    await writer.append(events.map(newRecordOf))
  }
  await writer.close()
  return {
    url: /Open the portal: (\S+)/.exec(service.output())?.[1] ?? '',
    /** The link and the code of the latest sign-in mail to this address. */
    mailTo: (email: string) => latestMail(service.output(), email),
    async close() {
      await service.stop()
      directory.remove()
    },
  }
}

/** Of what the service has printed. */
function latestMail(output: string, email: string): { link: string; code: string } | undefined {
  const mail = output.split(/^Mail to /m).findLast(text => text.startsWith(`${email}: Sign in`))
  const code = /^ {4}(\d{4} \d{4})$/m.exec(mail ?? '')?.[1]
  const link = /^ {4}(http\S+)$/m.exec(mail ?? '')?.[1]
  return code === undefined || link === undefined ? undefined : { code, link }
}

/** For `expect.poll`: the API looks for new and revoked keys twice a second, later on a busy machine. Each look is a shell. */
export const soon = { timeout: 60_000, interval: 200 }

/** Runs a curl line as a person pastes it into a shell, and returns the status of the answer. */
export async function statusOf(curlLine: string): Promise<number> {
  const { stdout } = await promisify(execFile)('sh', ['-c', `${curlLine} -sS -o /dev/null -w '%{http_code}'`])
  return Number(stdout)
}
