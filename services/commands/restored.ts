import { withServers } from '../distributed/access.ts'
import { readPositions } from '../projector/positions/positions.ts'
import { beginAgain, readTablesWatermark } from '../projector/positions/restore.ts'
import { type Config, readConfig } from '../runtime/config.ts'
import { type Command, type Io, jsonOption, printJson, readArguments } from './command.ts'

export const restoredCommand: Command = {
  help: {
    call: 'restored [--json]',
    does:
      'Tells the projectors that the tables of the configured ClickHouse were restored from a backup. They then read the log again from ' +
      'a day before the backup, fold every campaign, and give new stamps to what they read again. They notice most restores by themselves, ' +
      'and npm start notices all. You need it only if the consumer group is new or forgotten by Kafka, or if the log has lost records that ' +
      'the tables lack and nobody needs.',
    options: jsonOption,
    examples: ['restored'],
    cost: 'A few seconds, and then a fold of everything. Stop the projectors first.',
  },

  async run(args, io) {
    const { values } = readArguments(args, jsonOption)
    const positions = await readAgain(readConfig(process.env), io)
    if (values.json) printJson(io, { positions })
    else for (const { place, from } of positions) io.stdout.write(`${place} is read again from ${from}\n`)
    return 0
  },
}

/** Each partition, and the offset from which it is read again. */
function readAgain(config: Config, io: Io): Promise<{ place: string; from: number }[]> {
  return withServers(config, [], async ({ tables, databases, ...model }) => {
    const shards = await model.shards()
    const inspector = await model.inspector()
    const { members } = await inspector.group()
    if (members > 0) throw new Error(`the consumer group has ${members} projectors: stop them first`)
    const state = await inspector.log()
    const stored = await readPositions(shards, state.log)
    const watermark = await readTablesWatermark(tables, databases)
    // If the group remembers nothing, it is not known which watermark lists have shown. It cannot be later than now.
    const lostWatermark = Math.max(Date.now(), state.remembered.watermark)
    const warn = (message: string) => io.stderr.write(`${message}\n`)
    const rows = await beginAgain({ tables, databases, shards, now: Date.now, warn }, state, {
      ...{ stored, watermark, lostWatermark, acceptsLoss: true },
    })
    return [...rows].map(([place, { next }]) => ({ place, from: next }))
  })
}
