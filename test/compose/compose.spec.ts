/**
 * docker-compose.yml as it is, brought up: what it promises a person who runs it for real. Where official images cannot
 * be had, stand-ins take their names (test/support/containers); the first lines of a run say which.
 */
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../contracts/events/event.ts'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import { docker, dockerEngine, run } from '../support/containers/docker.ts'
import { composeImages, prepareImages } from '../support/containers/prepare.ts'
import { buildImage } from '../support/containers/stand-ins.ts'
import { needs, type Requirement } from '../support/requirements.ts'
import { campaignEvent, pledgeEvent } from '../support/sample-events.ts'
import { type ComposeProject, composeProject, installedCompose } from './project.ts'

const root = new URL('../..', import.meta.url).pathname
const services = ['kafka', 'clickhouse', 'redis', 'schema-registry', 'projector', 'query']
const programImage = /image: (pledgeview:\S+)/.exec(readFileSync(`${root}docker-compose.yml`, 'utf8'))?.[1]
const soon = { timeout: 60_000, interval: 500 }

let requirement: Requirement
let project: ComposeProject
let key: { key: string; secret: string }

describe('docker-compose.yml', () => {
  beforeAll(async () => {
    const compose = await installedCompose()
    requirement = [await dockerEngine(), compose].find(({ isMet }) => !isMet) ?? compose
    if (!requirement.isMet) return
    if (programImage === undefined) throw new Error('docker-compose.yml names no image of pledgeview')
    await prepareImages(composeImages(), line => console.log(line))
    await buildImage(programImage, root, ['--file', `${root}deploy/Dockerfile`])
    console.log(`${programImage}: built from deploy/Dockerfile`)
    project = await composeProject(compose.command)
    await project.mustCompose(['up', '--detach', '--no-build'])
  })

  beforeEach(context => needs(context, requirement))

  afterAll(async () => {
    await project?.compose(['down', '--volumes', '--timeout', '30'])
  })

  test('comes up: migrate ends well, and everything else becomes healthy', async () => {
    const [migrate = ''] = await project.containersOf('migrate')
    expect(await inspect(migrate, '{{.State.ExitCode}}')).toBe('0')
    for (const service of services) await expect.poll(() => healthOf(service), soon).toBe('healthy')
    const ready = await fetch(`${project.opsUrl}/readyz`)
    expect([ready.status, await ready.text()]).toEqual([200, expect.any(String)])
  })

  test('takes events and gives a key through the image, and the API answers with what they make', async () => {
    await append([
      campaignEvent({ campaign_id: 'one' }),
      pledgeEvent({ campaign_id: 'one', pledge_id: 'p', amount_minor: 2_550 }),
    ])
    const issued = await command(['keys', 'issue', '--json', ...integration])
    key = JSON.parse(issued)
    await expect.poll(() => slugs(), soon).toEqual(['slug-one'])
    const detail = await get('/projects/slug-one')
    expect(detail.status).toBe(200)
    expect(await detail.json()).toMatchObject({ data: { pledged_amount: 25.5, backer_count: 1 } })
    expect((await fetch(`${project.apiUrl}/projects`)).status).toBe(401)
  })

  test('starts a projector anew that was killed, and goes on', async () => {
    const [container = ''] = await project.containersOf('projector')
    // The only child of the container's init. `docker kill` would count as a person's wish and not be restarted.
    await docker(['exec', container, 'sh', '-c', 'kill -KILL $(cat /proc/1/task/1/children)'])
    await expect.poll(() => inspect(container, '{{.RestartCount}}'), soon).toBe('1')
    await append([campaignEvent({ campaign_id: 'two' })])
    await expect.poll(() => slugs(), soon).toEqual(['slug-one', 'slug-two'])
  })

  test.each(['projector', 'query'])(
    'runs %s as a user without rights, on a root file system that it cannot write',
    async service => {
      const [container = ''] = await project.containersOf(service)
      expect(await docker(['exec', container, 'id', '-u'])).toBe('1000')
      const written = await run('docker', ['exec', '--user', 'root', container, 'touch', '/app/written'])
      expect(written.stderr).toContain('Read-only file system')
      const rights = await docker(['exec', container, 'grep', 'CapBnd', '/proc/1/status'])
      expect(rights).toMatch(/\t0{16}$/)
    },
  )

  test('opens ports on the loopback only', async () => {
    const published = await Promise.all(
      services.map(async service => {
        const [container = ''] = await project.containersOf(service)
        return docker(['port', container])
      }),
    )
    const addresses = published.join('\n').split('\n').filter(Boolean)
    expect(addresses).toHaveLength(5)
    for (const address of addresses) expect(address).toContain(' -> 127.0.0.1:')
  })

  test('keeps what it has over down and up, and goes on from there', async () => {
    await project.mustCompose(['down'])
    await project.mustCompose(['up', '--detach', '--no-build'])
    await expect.poll(() => slugs(), soon).toEqual(['slug-one', 'slug-two'])
    await append([campaignEvent({ campaign_id: 'three' })])
    await expect.poll(() => slugs(), soon).toEqual(['slug-one', 'slug-three', 'slug-two'])
  })

  test.each(['projector', 'query'])('%s ends by itself when it is told to', async service => {
    const [container = ''] = await project.containersOf(service)
    await project.mustCompose(['stop', service])
    expect(await inspect(container, '{{.State.ExitCode}}')).toBe('0')
  })

  test('does not come up without its secrets, and says how to make them', async () => {
    const { code, stderr } = await project.compose(['config'], { secrets: false })
    expect(code).not.toBe(0)
    expect(stderr).toContain('openssl rand -hex 32')
  })
})

const integration = [
  ...['--account', 'me', '--name', 'Me', '--url', 'https://me.example', '--email', 'me@me.example'],
]

/** Runs a command in a container of its own, as a person would. */
function command(args: readonly string[], stdin?: string): Promise<string> {
  return project.mustCompose(['run', '--rm', '-T', 'pledgeview', ...args], stdin)
}

async function append(events: readonly ChangeEvent[]): Promise<void> {
  const lines = events.map(event => `${formatEvent(event)}\n`).join('')
  const done = JSON.parse(await command(['events', 'append', '-', '--json'], lines))
  expect(done).toMatchObject({ appended: events.length })
}

let asked = 0

/** The slugs of all campaigns, from a query that nobody has asked yet, so that no cache has the answer. */
async function slugs(): Promise<string[]> {
  const since = new Date(Date.UTC(2020, 0, 1) + asked++).toISOString()
  // Nobody answers yet where it has only just been brought up.
  const response = await get(`/projects?updated_since=${since}`).catch(() => undefined)
  if (response?.status !== 200) return []
  const { data } = (await response.json()) as { data: { slug: string }[] }
  return data.map(({ slug }) => slug).toSorted()
}

function get(path: string): Promise<Response> {
  return fetch(project.apiUrl + path, {
    headers: { 'X-API-Key': key.key, 'X-API-Secret': key.secret },
    signal: AbortSignal.timeout(10_000),
  })
}

async function healthOf(service: string): Promise<string> {
  const [container = ''] = await project.containersOf(service)
  return inspect(container, '{{.State.Health.Status}}')
}

function inspect(container: string, format: string): Promise<string> {
  return docker(['inspect', '--format', format, container])
}
