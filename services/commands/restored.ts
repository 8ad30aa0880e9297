import { withServers } from '../distributed/access.ts'
import { openExistingDataDirectory } from '../embedded/data-directory.ts'
import { liveConsumer } from '../embedded/model.ts'
import { openEmbeddedTables } from '../embedded/tables.ts'
import { openJournalReader } from '../log/local/journal.ts'
import { lockDataDirectory } from '../log/local/lock.ts'
import type { LogState } from '../log/port.ts'
import { beginAgain, readTablesWatermark } from '../projector/positions/positions.ts'
import { type PositionsShard, readPositions } from '../projector/positions/stored-positions.ts'
import { closing } from '../runtime/async/closing.ts'
import { type Config, readConfig } from '../runtime/config.ts'
import { createLogger } from '../runtime/ops/logger.ts'
import type { Databases, Tables } from '../tables/port.ts'
import {
  type Command,
  commonOptions,
  dataDirOption,
  embeddedDirectory,
  type Io,
  printJson,
  readArguments,
} from './command.ts'
import { jsonOption } from './help.ts'

export const restoredCommand: Command = {
  help: {
    call: 'restored [--data-dir D] [--json]',
    does:
      'Says that the tables were restored from a backup. The projectors then read the log again from a day before the backup, fold ' +
      'every campaign, and give new stamps to what they read again. They notice most restores by themselves: this is for a consumer group ' +
      'that was never used, and for a log that has deleted records which the tables lack and nobody needs.',
    options: { ...dataDirOption, ...jsonOption },
    examples: ['restored', 'restored --data-dir /var/lib/pledgeview'],
    cost: 'A few seconds, and then a fold of everything. Stop the projectors, or the service, before.',
  },

  async run(args, io) {
    const { values } = readArguments({ args, options: commonOptions })
    const config = readConfig(process.env)
    const directory = embeddedDirectory(values['data-dir'], config)
    const positions =
      directory === undefined ? await ofCluster(config, io) : await ofDirectory(directory, config, io)
    if (values.json) printJson(io, { positions })
    else for (const { place, from } of positions) io.stdout.write(`${place} is read again from ${from}\n`)
    return 0
  },
}

interface Again {
  place: string
  /** The offset from which it is read again. */
  from: number
}

interface Model {
  tables: Tables
  databases: Databases
  shards: readonly PositionsShard[]
}

function ofCluster(config: Config, io: Io): Promise<Again[]> {
  return withServers(config, [], async ({ tables, databases, ...model }) => {
    const shards = await model.shards()
    const inspector = await model.inspector()
    const { members } = await inspector.group()
    if (members > 0) throw new Error(`the consumer group has ${members} projectors: stop them first`)
    return readAgain({ tables, databases, shards }, await inspector.log(), io)
  })
}

function ofDirectory(root: string, config: Config, io: Io): Promise<Again[]> {
  return closing(async open => {
    const directory = openExistingDataDirectory(root)
    open(lockDataDirectory(directory.root))
    const logger = createLogger('error')
    const { tables, databases } = open(await openEmbeddedTables({ directory, config, logger }))
    let state: LogState | undefined
    const find = async (found: LogState) => {
      state = found
      return new Map()
    }
    const starts = { find, beginAnew: () => {} }
    await (await openJournalReader(directory.journal, { consumer: liveConsumer, starts })).close()
    if (!state) throw new Error(`the journal ${directory.journal} cannot be read`)
    return readAgain({ tables, databases, shards: [{ tables, databases }] }, state, io)
  })
}

async function readAgain(
  model: Model,
  state: Pick<LogState, 'log' | 'partitions' | 'remembered'>,
  io: Io,
): Promise<Again[]> {
  const { tables, databases, shards } = model
  const stored = await readPositions(shards, state.log)
  const watermark = await readTablesWatermark(tables, databases)
  // Without a memory of the group, nobody knows up to when lists were shown. Until now, at most.
  const lostWatermark = Math.max(Date.now(), state.remembered.watermark)
  const warn = (message: string) => io.stderr.write(`${message}\n`)
  const rows = await beginAgain({ ...model, now: Date.now, warn }, state, {
    ...{ stored, watermark, lostWatermark, acceptsLoss: true },
  })
  return [...rows].map(([place, { next }]) => ({ place, from: next }))
}
