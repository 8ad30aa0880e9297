/** The distributed form on the services that there are: given ones, those of images, or this machine's. */
import { afterEach, describe, expect, test } from 'vitest'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import { type Deployment, deploy } from '../support/deployment.ts'
import { untilLeads } from '../support/kickstarter.ts'
import { campaignEvent, pledgeEvent } from '../support/sample-events.ts'
import { useDistributedServices } from '../support/services/distributed.ts'

// Six processes start one after the other. Only a hang takes this long, also on a busy machine.
const testMsMax = 300_000
const soon = { timeout: 60_000, interval: 500 }

describe('the distributed form', () => {
  const services = useDistributedServices()
  let deployment: Deployment | undefined

  afterEach(() => deployment?.stop())

  test(
    'answers from events that were appended, on whatever services there are',
    async () => {
      const { addresses, settings } = services()
      deployment = await deploy(addresses, settings)
      const projector = await deployment.startProjector()
      const query = await deployment.startQuery()
      const events = [
        campaignEvent({ campaign_id: 'c' }),
        pledgeEvent({ campaign_id: 'c', pledge_id: 'p', amount_minor: 2_550 }),
      ]
      const lines = events.map(event => `${formatEvent(event)}\n`).join('')
      const appended = await deployment.command(['events', 'append', '-', '--json'], lines)
      expect(JSON.parse(appended.stdout)).toMatchObject({ appended: 2 })
      await untilLeads(projector)
      const account = [
        '--account',
        'me',
        '--name',
        'Me',
        '--url',
        'https://me.example',
        '--email',
        'me@me.example',
      ]
      const issued = await deployment.command(['keys', 'issue', '--json', ...account])
      const { key, secret } = JSON.parse(issued.stdout) as { key: string; secret: string }
      let asked = 0
      async function pledged(): Promise<number[]> {
        // A query that nobody has asked yet, so that no cache has the answer.
        const since = new Date(Date.UTC(2020, 0, 1) + asked++).toISOString()
        const response = await fetch(`${query.apiUrl}/projects?updated_since=${since}`, {
          headers: { 'X-API-Key': key, 'X-API-Secret': secret },
        })
        const { data = [] } = (await response.json()) as { data?: { pledged_amount: number }[] }
        return data.map(({ pledged_amount }) => pledged_amount)
      }
      await expect.poll(pledged, soon).toEqual([25.5])
    },
    testMsMax,
  )
})
