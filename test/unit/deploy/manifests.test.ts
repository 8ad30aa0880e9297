/** What the Kubernetes manifests promise that needs no tool; the rest is in test/integration/deploy. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../../services/runtime/config.ts'
import { createMetrics } from '../../../services/runtime/ops/metrics.ts'
import { createOpsServer } from '../../../services/runtime/ops/ops-server.ts'
import { run } from '../../support/runner/programs.ts'

const read = (name: string) => readFileSync(new URL(`../../../${name}`, import.meta.url), 'utf8')

test('a migration only adds, so that the processes of the version before go on while it runs', () => {
  const folder = new URL('../../../contracts/tables/', import.meta.url)
  const migrations = ['.', 'generation'].flatMap(part =>
    readdirSync(new URL(`${part}/`, folder))
      .filter(name => name.endsWith('.sql'))
      .map(name => `${part}/${name}`),
  )
  expect(migrations).toEqual(expect.arrayContaining(['./0001-people.sql', 'generation/0001-ledgers.sql']))
  for (const name of migrations) {
    const statements = readFileSync(new URL(name, folder), 'utf8').replaceAll(/^\s*--.*$/gm, '')
    expect(statements, name).not.toMatch(
      /\b(DROP (TABLE|COLUMN|VIEW|DATABASE)|RENAME|EXCHANGE|TRUNCATE|DETACH)\b/i,
    )
  }
})

test('KEDA scales the projectors by the lag of their group, between two and the number of partitions', () => {
  const scaled = read('deploy/kubernetes/scaling/projector.yaml')
  const { PLEDGEVIEW_KAFKA_GROUP: group, PLEDGEVIEW_KAFKA_PARTITIONS: partitions } = readConfig({})
  expect(scaled).toContain(`consumerGroup: ${group}\n`)
  expect(scaled).toContain(`maxReplicaCount: ${partitions}\n`)
  expect(scaled).toMatch(/scaleTargetRef:\n {4}name: pledgeview-projector\n/)
  expect(read('deploy/kubernetes/services/projector.yaml')).toContain('  name: pledgeview-projector\n')
})

test('in the compose file, only what hashes backers gets the key for that', () => {
  const compose = read('docker-compose.yml')
  const [shared = '', services = ''] = compose.split(/^services:$/m)
  expect(shared).not.toContain('PLEDGEVIEW_BACKER_KEY:')
  const blocks = services.split(/^ {2}(?=[\w-]+:)/m).filter(block => block.includes('PLEDGEVIEW_BACKER_KEY:'))
  expect(blocks.map(block => block.slice(0, block.indexOf(':')))).toEqual(['pledgeview', 'projector'])
})

test('in the compose file only one service builds the image, so that `up` keeps containers in which nothing has changed', () => {
  const compose = read('docker-compose.yml')
  expect(compose.match(/^ *build:/gm)).toHaveLength(1)
  expect(compose).toMatch(/^ {2}migrate:\n {4}<<: \*pledgeview\n {4}build:/m)
  expect(compose).toContain('  image: pledgeview:0.1.0\n')
  expect(compose).toContain('  pull_policy: never\n')
})

test('the health check of the image succeeds only while the ops port says that the process moves', async () => {
  let ok = true
  const ops = createOpsServer({
    ...{ hosts: [], health: () => ({ loop: { ok, detail: '' } }), readiness: async () => ({}) },
    ...{ status: async () => ({}), metrics: createMetrics(), beforeScrape: async () => {} },
  })
  onTestFinished(() => ops.close())
  const { port } = new URL(await ops.listen({ host: '127.0.0.1', port: 0 }))
  const [, words = '[]'] = /^HEALTHCHECK .* CMD (.*)$/m.exec(read('deploy/Dockerfile')) ?? []
  const [program, ...args] = JSON.parse(words)
  const check = async () => (await run(program, args, { environment: { PLEDGEVIEW_OPS_PORT: port } })).code
  expect(await check()).toBe(0)
  ok = false
  expect(await check()).toBe(1)
  await ops.close()
  expect(await check()).toBe(1)
})
