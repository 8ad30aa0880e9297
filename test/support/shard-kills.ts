/** kill -9 of a shard's server, of a projector and of the projector that leads the fold, while events arrive. */
import type { Readable } from 'node:stream'
import { expect, vi } from 'vitest'
import type { Deployment } from './deployment.ts'
import { column, livesWithBatches } from './fold-records.ts'
import type { ServiceProcess } from './service-process.ts'
import type { ShardServers } from './shards.ts'

export interface KillsOf {
  deployment: Deployment
  shards: ShardServers
  /** Those that run; a killed one is replaced. */
  projectors: ServiceProcess[]
  /** The events, NDJSON. One part is appended for each kill, and one at the end. */
  slices: readonly Readable[]
  /** How many requests of a reader were not answered so far. */
  refused: () => number
}

// Only a hang takes this long, also on a busy machine.
const soon = { timeout: 240_000, interval: 100 }
// Not the one that the query processes ask.
const killedShard = 1

/** Appends all of the events. Resolves with what was done, as a text. */
export async function killWhileEventsArrive(of: KillsOf): Promise<string> {
  const { deployment, shards, projectors, slices, refused } = of
  const batches = async () => {
    const { databases, tables } = shards
    const [count] = await column(tables, `SELECT count() AS value FROM ${databases.ledger}.batch_log`)
    return Number(count)
  }
  let events = 0
  async function append(slice: Readable | undefined): Promise<void> {
    const { code, stdout, stderr } = await deployment.command(['events', 'append', '-', '--json'], slice)
    expect(code, stderr).toBe(0)
    events += (JSON.parse(stdout) as { appended: number }).appended
  }
  /** Kills when something of this part was written. */
  async function during(slice: Readable | undefined, kill: () => Promise<void>): Promise<void> {
    const written = await batches()
    const appending = append(slice)
    await vi.waitFor(async () => expect(await batches()).toBeGreaterThan(written), soon)
    await kill()
    await appending
  }
  async function killProjector(killed: ServiceProcess | undefined): Promise<void> {
    if (!killed) throw new Error('there is no such projector')
    await killed.stop('SIGKILL')
    expect(killed.child.signalCode).toBe('SIGKILL')
    projectors.splice(projectors.indexOf(killed), 1, await deployment.startProjector())
  }
  const leads = (projector: ServiceProcess, holder: string) => projector.output().includes(holder)

  await during(slices[0], async () => {
    const before = refused()
    await shards.servers[killedShard]?.kill()
    // The readers notice that it is away, too.
    await vi.waitFor(() => expect(refused()).toBeGreaterThan(before), soon)
    await shards.restart(killedShard)
  })
  await during(slices[1], async () => {
    const holder = await leaderOf(shards, 0)
    await killProjector(projectors.find(projector => !leads(projector, holder)))
  })
  let holder = ''
  await during(slices[2], async () => {
    await vi.waitFor(async () => {
      holder = await leaderOf(shards, killedShard)
      expect(projectors.filter(projector => leads(projector, holder))).toHaveLength(1)
    }, soon)
    await killProjector(projectors.find(projector => leads(projector, holder)))
  })
  await append(slices[3])
  for (const shard of shards.shards.keys()) {
    await vi.waitFor(async () => expect(await leaderOf(shards, shard)).not.toBe(holder), soon)
  }
  const lives = await livesWithBatches(shards.tables, shards.databases)
  return `${events} events; killed: shard ${killedShard + 1}, a projector, the leader; ${lives} runs of projectors wrote`
}

/** The projector that leads the fold of this shard, by the name that it has in its log. */
async function leaderOf({ shards }: ShardServers, shard: number): Promise<string> {
  const { tables, databases } = shards[shard] ?? {}
  if (!tables || !databases) throw new Error(`there is no shard ${shard}`)
  const [holder] = await column(
    tables,
    `SELECT holder AS value FROM ${databases.ledger}.fold_epochs ORDER BY epoch DESC LIMIT 1`,
  )
  return String(holder)
}

/** Resolves when one of these projectors leads the fold. */
export async function untilOneLeads(projectors: readonly ServiceProcess[]): Promise<void> {
  await vi.waitFor(async () => {
    const metrics = projectors.map(async ({ opsUrl }) => (await fetch(`${opsUrl}/metrics`)).text())
    expect((await Promise.all(metrics)).join('\n')).toMatch(/^pledgeview_is_leader 1$/m)
  }, soon)
}
