/**
 * Brings up docker-compose.yml, and checks what it promises its operators. If official images are not available, stand-ins with
 * separate names replace them (test/support/containers); the first lines of a run name them. All images that a run builds are
 * removed at its end.
 */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ChangeEvent } from '../../contracts/events/event.ts'
import { formatEvent } from '../../contracts/events/ndjson.ts'
import { docker } from '../support/containers/docker.ts'
import { imageOf } from '../support/containers/images.ts'
import { composeImages, prepareImages, removeImages } from '../support/containers/prepare.ts'
import { buildProgram } from '../support/containers/stand-ins.ts'
import { campaignEvent, pledgeEvent } from '../support/events/sample-events.ts'
import { run } from '../support/runner/programs.ts'
import { prerequisites } from './prerequisites.ts'
import { type ComposeProject, composeProject } from './project.ts'

const services = [
  ...['kafka', 'clickhouse', 'redis', 'schema-registry', 'projector', 'query', 'portal', 'balancer'],
]
// The services that run official images, and those that run the program.
const official = {
  kafka: imageOf('apache/kafka'),
  clickhouse: imageOf('clickhouse/clickhouse-server'),
  redis: imageOf('redis'),
  balancer: imageOf('haproxy'),
  'schema-registry': imageOf('apicurio/apicurio-registry-kafkasql'),
}
const ofProgram = ['migrate', 'pledgeview', 'projector', 'query', 'portal']
// Not the name that the compose file builds: a later `docker compose up` must not run what a test built.
const programImage = `pledgeview-test:${randomBytes(4).toString('hex')}`
const soon = { timeout: 60_000, interval: 500 }

let built: readonly string[] = []
let project: ComposeProject
let key: { key: string; secret: string }

describe('docker-compose.yml', () => {
  beforeAll(async () => {
    const { compose } = await prerequisites()
    const prepared = await prepareImages(composeImages(), line => console.log(line))
    built = [programImage, ...prepared.built]
    await buildProgram(programImage)
    console.log(`${programImage}: built from deploy/Dockerfile`)
    const images = Object.entries(official).map(([service, image]) => [service, prepared.names.get(image)])
    const programs = ofProgram.map(service => [service, programImage])
    project = await composeProject(compose, Object.fromEntries([...images, ...programs]))
    await project.mustCompose(['up', '--detach', '--no-build'])
  })

  afterAll(async () => {
    await project?.close()
    await removeImages(built)
  })

  test('comes up: migrate succeeds, and all other services become healthy', async () => {
    const [migrate = ''] = await project.containersOf('migrate')
    expect(await inspect(migrate, '{{.State.ExitCode}}')).toBe('0')
    for (const service of services) await expect.poll(() => healthOf(service), soon).toBe('healthy')
    const isReady = async () => (await fetch(`${project.opsUrl}/readyz`)).status
    await expect.poll(isReady, soon).toBe(200)
    expect((await fetch(`${project.portalUrl}/sign-in`)).status).toBe(200)
  })

  test('appends events and issues a key through the image, and the API answers from them', async () => {
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

  test('runs two query processes behind the balancer, and their ops ports answer at their addresses', async () => {
    await project.mustCompose(['up', '--detach', '--no-build', '--scale', 'query=2'])
    const [balancer = ''] = await project.containersOf('balancer')
    const scrape =
      'wget -q -O - http://127.0.0.1:9090/metrics | grep -c \'query",server="query.",state="UP"} 1\''
    await expect.poll(() => docker(['exec', balancer, 'sh', '-c', scrape]).catch(() => '0'), soon).toBe('2')
    for (let count = 0; count < 10; count++) expect((await get('/projects')).status).toBe(200)
    const found = await docker(['exec', balancer, 'getent', 'ahostsv4', 'query'])
    const addresses = new Set(found.match(/^[\d.]+/gm))
    expect(addresses.size).toBe(2)
    for (const address of addresses) {
      const ask = ['exec', balancer, 'wget', '-q', '-O', '-', `http://${address}:9090/metrics`]
      // HAProxy takes a process for up until its first check, so it may not listen yet.
      const metrics = async () => {
        expect((await get('/projects')).status).toBe(200)
        return docker(ask).catch(() => '')
      }
      await expect.poll(metrics, soon).toMatch(/pledgeview_http_requests_total\{.*\} [1-9]/)
    }
  })

  test('restarts a projector that was killed, and continues', async () => {
    const [container = ''] = await project.containersOf('projector')
    // Kills the only child of the container's init. Docker does not restart a container after `docker kill`.
    await docker(['exec', container, 'sh', '-c', 'kill -KILL $(cat /proc/1/task/1/children)'])
    await expect.poll(() => inspect(container, '{{.RestartCount}}'), soon).toBe('1')
    await append([campaignEvent({ campaign_id: 'two' })])
    await expect.poll(() => slugs(), soon).toEqual(['slug-one', 'slug-two'])
  })

  test.each(['projector', 'query', 'portal'])(
    'runs %s as an unprivileged user, on a read-only root file system',
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
    expect(addresses).toHaveLength(6)
    for (const address of addresses) expect(address).toContain(' -> 127.0.0.1:')
  })

  test('keeps its data over down and up, and continues from there', async () => {
    await project.mustCompose(['down'])
    await project.mustCompose(['up', '--detach', '--no-build'])
    await expect.poll(() => slugs(), soon).toEqual(['slug-one', 'slug-two'])
    await append([campaignEvent({ campaign_id: 'three' })])
    await expect.poll(() => slugs(), soon).toEqual(['slug-one', 'slug-three', 'slug-two'])
  })

  test.each(['projector', 'query', 'portal'])('%s ends by itself on SIGTERM', async service => {
    const [container = ''] = await project.containersOf(service)
    await project.mustCompose(['stop', service])
    expect(await inspect(container, '{{.State.ExitCode}}')).toBe('0')
  })

  test('does not come up without its secrets, and says how to create them', async () => {
    const { code, stderr } = await project.compose(['config'], { secrets: false })
    expect(code).not.toBe(0)
    expect(stderr).toContain('openssl rand -hex 32')
  })
})

const integration = [
  ...['--account', 'me', '--name', 'Me', '--url', 'https://me.example', '--email', 'me@me.example'],
]

/** Runs a command in a separate container, as an operator would. */
function command(args: readonly string[], stdin?: string): Promise<string> {
  return project.mustCompose(['run', '--rm', '-T', 'pledgeview', ...args], stdin)
}

async function append(events: readonly ChangeEvent[]): Promise<void> {
  const lines = events.map(event => `${formatEvent(event)}\n`).join('')
  const done = JSON.parse(await command(['events', 'append', '-', '--json'], lines))
  expect(done).toMatchObject({ appended: events.length })
}

let asked = 0

/** The slugs of all campaigns, with a query that was not sent yet, so that no cache has the answer. */
async function slugs(): Promise<string[]> {
  const since = new Date(Date.UTC(2020, 0, 1) + asked++).toISOString()
  // Just after the start the API may not answer yet.
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
